"""`#SBATCH --signal` as sbatch reads it, and each script once."""

import pytest

from tests.make import job
from tidegate.adapters.slurm_script import SCRIPTS_AT_ONCE, Scripts, asked_signal


@pytest.mark.parametrize(
    ("lines", "asked"),
    [
        ("#SBATCH --signal=B:USR1@90", "B:USR1@90"),
        ("#SBATCH --signal B:USR1@90", "B:USR1@90"),
        ('#SBATCH -N 2 --signal="B:SIGUSR1@90" # before the limit', "B:USR1@90"),
        ("#SBATCH --signal=usr2@30", "USR2@30"),
        ("#SBATCH --signal=10", "USR1@60"),
        ("#SBATCH --signal=R:TERM@5", "TERM@5"),
        ("#SBATCH --signal=RB:TERM@5", "B:TERM@5"),
        ("#SBATCH --signal=USR1\n\n# words\n#SBATCH --signal=B:USR2@9", "B:USR2@9"),
        ("#SBATCH -N 1\n#SBATCH hetjob\n#SBATCH --signal=USR1", ""),
        ("#SBATCH --signal", ""),
        ("#SBATCH --signal=999@5", ""),
        ("#SBATCH --signal=USR1@soon", ""),
        ("#SBATCH --signal='USR1", ""),
        ("##SBATCH --signal=USR1", ""),
        ("# SBATCH --signal=USR1", ""),
        ("srun hostname\n#SBATCH --signal=USR1", ""),
        ("echo '#SBATCH --signal=USR1'", ""),
        ("", ""),
    ],
)
def test_the_last_option_before_the_first_command_counts(lines: str, asked: str) -> None:
    assert asked_signal(f"#!/bin/bash\n{lines}\nsleep 1\n") == asked


class Library:
    """Scripts to read, and which were read."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_open = True

    def __call__(self, job_id: str) -> str | None:
        self.asked.append(job_id)
        return "#!/bin/sh\n#SBATCH --signal=USR1@30\n" if self.is_open else None


def test_a_script_is_read_once_and_when_its_job_runs() -> None:
    library = Library()
    scripts = Scripts(library)
    waits = scripts.with_signals([job(1)])
    runs = scripts.with_signals([job(1, on=["i-1"])])
    waits_again = scripts.with_signals([job(1)])

    assert [found.signal for (found,) in (waits, runs, waits_again)] == ["", "USR1@30", "USR1@30"]
    assert library.asked == ["1"]


def test_tasks_of_an_array_share_a_script() -> None:
    library = Library()

    found = Scripts(library).with_signals(
        [job(f"3_{n}", array_job_id="3", on=["i-1"]) for n in range(9)]
    )

    assert {each.signal for each in found} == {"USR1@30"}
    assert library.asked == ["3_0"]


def test_a_job_that_says_it_in_its_comment_needs_no_script() -> None:
    library = Library()

    Scripts(library).with_signals([job(1, on=["i-1"], comment="tidegate:ckpt=USR1@20")])

    assert library.asked == []


def test_many_scripts_are_read_over_several_looks_and_jobs_that_left_are_forgotten() -> None:
    library = Library()
    scripts = Scripts(library)
    jobs = [job(n, on=["i-1"]) for n in range(SCRIPTS_AT_ONCE + 5)]

    scripts.with_signals(jobs)
    first = len(library.asked)
    second = scripts.with_signals(jobs)
    scripts.with_signals([])
    scripts.with_signals(jobs[:1])

    assert first == SCRIPTS_AT_ONCE
    assert all(each.signal for each in second)
    assert len(library.asked) == len(jobs) + 1


def test_a_script_that_cannot_be_read_now_is_read_at_the_next_look() -> None:
    library = Library()
    scripts = Scripts(library)
    library.is_open = False
    before = scripts.with_signals([job(n, on=["i-1"]) for n in range(3)])
    library.is_open = True
    after = scripts.with_signals([job(n, on=["i-1"]) for n in range(3)])

    assert [each.signal for each in before] == ["", "", ""]
    assert all(each.signal for each in after)
    assert library.asked == ["0", "0", "1", "2"]
