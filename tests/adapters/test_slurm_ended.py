"""What squeue shows of jobs that ended, as the planner counts them."""

from collections.abc import Sequence

from tidegate.adapters.slurm_ended import COMMAND, ENDED_MAX, parse
from tidegate.core.model.ended import EndedJob

# Verbatim of Slurm 22.05.8 (docs/real-slurm.md).
TEXT = """\
4|COMPLETED|2026-11-23T17:36:15|n[1-2]
2|FAILED|2026-11-23T17:36:14|n1
3_0|OUT_OF_MEMORY|2026-11-23T17:36:13|n1
"""


def unfold(lists: Sequence[str]) -> dict[str, tuple[str, ...]]:
    assert list(lists) == ["n[1-2]"]
    return {"n[1-2]": ("n1", "n2")}


def nothing(lists: Sequence[str]) -> dict[str, tuple[str, ...]]:
    return {}


def test_jobs_that_ended_tell_their_nodes_and_whether_they_failed():
    one, two, three = parse(TEXT, unfold)

    assert (one.job_id, one.node_names, one.is_failed) == ("4", ("n1", "n2"), False)
    assert (two.job_id, two.node_names, two.is_failed) == ("2", ("n1",), True)
    assert (three.job_id, three.is_failed) == ("3_0", True)
    assert one.ended_at_s == two.ended_at_s + 1 == three.ended_at_s + 2


def test_what_cannot_be_read_is_left_out():
    text = "7|FAILED\n8|FAILED|soon|n1\n9|FAILED|Unknown|n1\nslurm: a word of the site\n\n"

    assert parse(text, nothing) == ()


def test_of_very_many_the_newest_are_told():
    text = "".join(
        f"{number}|COMPLETED|2026-11-23T17:{number // 60:02}:{number % 60:02}|n1\n"
        for number in range(ENDED_MAX + 100)
    )

    found = parse(text, nothing)

    assert len(found) == ENDED_MAX
    assert {type(each) for each in found} == {EndedJob}
    assert min(int(each.job_id) for each in found) == 100


def test_what_users_end_themselves_is_not_asked_for():
    assert COMMAND[4] == "COMPLETED,BOOT_FAIL,FAILED,OUT_OF_MEMORY"
