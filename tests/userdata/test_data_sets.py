"""Data sets of S3 on a node's own disk: the programs themselves, with a stand-in for the AWS CLI,
and once with the real one against a stand-in for S3.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.userdata.data_sets import PLACE, Boot, Node


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_data_set_is_there_when_it_is_complete(node: Node) -> None:
    node.put({"a.tar": "one", "deep/b.tar": "three"})

    node.load(PLACE)

    found = node.folder("sets+imagenet")
    assert (found / "files/deep/b.tar").read_text() == "three"
    assert (found / "complete").read_text().startswith("2 objects, 8 bytes")
    assert node.asks(f"{PLACE}/") == (0, str(found / "files"), "")
    assert "s3://sets/imagenet is complete: 2 objects, 8 bytes" in node.told


def test_what_is_there_is_not_loaded_again(node: Node) -> None:
    node.put({"a.tar": "one"})
    node.load(PLACE)
    calls = node.calls

    node.load(PLACE)

    assert node.calls == calls


@pytest.mark.parametrize(
    "place",
    [
        "s3://secrets/imagenet",
        "s3://others/closed",
        "s3://others/opened",
        "s3://others",
        "s3://sets/../secrets",
        "s3://sets/./x",
        "s3://sets/x/..",
        "s3://sets/$(reboot)",
        "s3://sets/a+b",
        "s3://sets//x",
        "s3://sets/" + "x" * 236,
        "sets/imagenet",
        "/etc",
        "--help",
    ],
)
def test_nothing_is_taken_but_what_the_cluster_file_names(node: Node, place: str) -> None:
    node.load(place)

    assert node.calls == []
    assert not list((node.here / "scratch/tidegate-data").iterdir())
    assert "is not loaded: the cluster file's prefetch does not allow it" in node.told
    assert node.asks("s3://secrets/imagenet")[2].endswith("prefetch does not allow it")


@pytest.mark.parametrize(
    "place",
    ["s3://sets", "s3://others/open", "s3://others/open/deeper", "s3://sets/" + "x" * 235],
)
def test_a_bucket_or_a_prefix_is_allowed_with_all_below(node: Node, place: str) -> None:
    node.put({"a": "x"})

    node.load(place)

    assert node.asks(place)[0] == 0


def test_a_bucket_that_is_denied_is_told_in_s3_s_words(node: Node) -> None:
    (node.here / "says").write_text("\nAn error occurred (AccessDenied): no such right\n")

    node.load(PLACE)

    reason = "An error occurred (AccessDenied): no such right"
    assert node.asks(PLACE) == (1, "", f"tidegate-data: {PLACE}: {reason}")
    assert f"s3://sets/imagenet is not loaded: {reason}" in node.told


def test_a_metadata_service_that_is_slow_at_first_keeps_no_data_away(node: Node) -> None:
    """As it may be for all of a boot's questions at once."""
    node.put({"a": "1"})
    (node.here / "answers").write_text("3\n")

    node.load(PLACE)

    assert node.asks(PLACE)[0] == 0, node.told


def test_half_a_data_set_is_never_complete_and_takes_no_room(node: Node) -> None:
    node.put({"a.tar": "one"}, listed=[3, 5])
    (node.here / "sync_says").write_text("download failed: b.tar\n")
    node.run("ask", PLACE)
    script = (node.here / "bundle/lib.sh").read_text()
    (node.here / "bundle/lib.sh").write_text(f"{script}\npause() {{ :; }}\n")

    node.load(PLACE)

    assert node.asks(PLACE)[2].endswith("1 of 2 objects came: download failed: b.tar")
    assert sum("s3 sync" in each for each in node.calls) == 3
    assert [each.name for each in node.folder("sets+imagenet").iterdir()] == ["failed"]


@pytest.mark.parametrize(("listed", "came"), [([3, 5], "1 of 2"), ([4], "1 of 1"), ([3], "")])
def test_what_changed_while_it_came_is_not_whole(node: Node, listed: list[int], came: str) -> None:
    """The AWS CLI itself is content."""
    program = node.here / "bundle/files/data-sets.sh"
    program.write_text(program.read_text().replace("TRIES=3", "TRIES=1"))
    node.put({"a.tar": "one"}, listed=listed)

    node.load(PLACE)

    code, _, said = node.asks(PLACE)
    changed = f"{came} objects came: what lies there is not what was listed before"
    assert (code, said.endswith(changed)) == ((1, True) if came else (0, False))


def test_what_failed_is_tried_again_for_the_next_job(node: Node) -> None:
    (node.here / "says").write_text("An error occurred (AccessDenied)\n")
    node.load(PLACE)
    (node.here / "says").unlink()
    node.put({"a": "x"})

    node.job("prolog", "7", f"tidegate:data={PLACE}/")
    node.run("load", "once")

    assert node.asks(PLACE)[0] == 0


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ([], "no object lies under s3://sets/imagenet/"),
        ([1] * 100_001, "more than 100000 objects lie under s3://sets/imagenet/"),
    ],
)
def test_none_or_far_too_many_objects_are_refused(node: Node, listed: list[int], said: str) -> None:
    node.put({}, listed=listed)

    node.load(PLACE)

    assert said in node.asks(PLACE)[2]
    assert not any("s3 sync" in each for each in node.calls)


def test_a_short_disk_lets_go_of_what_was_used_longest_ago(node: Node) -> None:
    node.put({"a": "x" * 300_000})
    for number, name in enumerate(("old", "older", "new")):
        node.load(f"s3://sets/{name}")
        age = {"old": 2, "older": 1, "new": 3}[name]
        os.utime(node.folder(f"sets+{name}") / "complete", (age, age))
        assert node.asks(f"s3://sets/{name}")[0] == 0, number

    node.load("s3://sets/newest")

    left = {each.name for each in (node.here / "scratch/tidegate-data").iterdir()}
    assert left == {"sets+old", "sets+new", "sets+newest"}


def test_what_a_running_job_reads_or_a_job_waits_for_stays(node: Node) -> None:
    node.put({"a": "x" * 300_000})
    for name in ("read", "free", "other"):
        node.load(f"s3://sets/{name}")
    node.job("prolog", "7", "tidegate:data=s3://sets/read, tidegate:data=s3://sets/other")
    node.run("load", "once")

    node.load("s3://sets/more")
    node.load("s3://sets/none")

    assert not node.folder("sets+free").exists()
    # It is the only one left that nobody has.
    assert not node.folder("sets+more").exists()
    node.job("prolog", "8", "tidegate:data=s3://sets/none")
    node.load("s3://sets/again")
    assert "it needs 1 MiB, and 0 MiB are left" in node.asks("s3://sets/again")[2]
    node.job("epilog", "7")
    node.load("s3://sets/again")
    assert node.asks("s3://sets/again")[0] == 0


def test_a_margin_of_the_disk_is_for_jobs(node: Node) -> None:
    (node.here / "taken").write_text("600000\n")
    node.put({"a": "x" * 350_001})

    node.load(PLACE)

    assert node.asks(PLACE)[2].endswith("beside a margin of 5 % and what others use")


def test_a_job_may_wait_while_it_is_loaded(node: Node) -> None:
    node.run("ask", PLACE)

    assert node.asks(PLACE, "1")[2].endswith("not complete after 1 s")


def test_what_was_begun_before_a_reboot_and_nobody_wants_goes(node: Node) -> None:
    (node.folder("sets+half") / "files").mkdir(parents=True)
    (node.folder("sets+imagenet") / "files").mkdir(parents=True)
    (node.folder("sets+imagenet") / "files" / "a.tar").write_text("one")
    node.put({"a.tar": "one"})

    node.load(PLACE)

    assert not node.folder("sets+half").exists()
    assert node.asks(PLACE)[0] == 0


# The AWS CLI writes to NAME.XXXXXXXX and renames it, and leaves that where it is killed.
# Source: s3transfer, utils.py (get_temp_filename, random_file_extension).
def test_what_a_killed_load_left_is_no_part_of_the_data_set(node: Node) -> None:
    (node.folder("sets+imagenet") / "files/deep").mkdir(parents=True)
    (node.folder("sets+imagenet") / "files/deep/b.tar.7dE3bA90").write_text("thr")
    node.put({"a.tar": "one", "deep/b.tar": "three"})

    node.load(PLACE)

    folder = Path(node.asks(PLACE)[1])
    assert [each.name for each in (folder / "deep").iterdir()] == ["b.tar"]


def test_a_try_that_was_cut_leaves_nothing_to_the_next(node: Node) -> None:
    aws = node.here / "bin/aws"
    cut = f"""\
    "s3 sync")
        if mkdir {node.here}/was_cut 2>/dev/null; then
            printf x >"${{*: -1}}/a.tar.0123abCD"
            kill -TERM $$
        fi
"""
    aws.write_text(aws.read_text().replace('    "s3 sync")\n', cut))
    lib = node.here / "bundle/lib.sh"
    lib.write_text(f"{lib.read_text()}\npause() {{ :; }}\n")
    node.put({"a.tar": "one"})

    node.load(PLACE)

    assert [each.name for each in Path(node.asks(PLACE)[1]).iterdir()] == ["a.tar"]


def test_a_comment_of_other_things_asks_for_nothing(node: Node) -> None:
    node.job("prolog", "7", "tidegate:ckpt=USR1@90 see s3://sets/imagenet")

    assert not list((node.here / "run/data-sets/asked").iterdir())


@pytest.fixture
def boot(node: Node) -> Boot:
    return Boot(node)


STARTED = "systemctl daemon-reload\nsystemctl start --no-block tidegate-data-sets\n"


def test_a_boot_asks_for_what_its_tag_says_and_waits_for_nothing(boot: Boot) -> None:
    printed = boot.run(tag="echo s3://sets/imagenet s3://secrets/x s3://sets/c4")

    assert printed == STARTED
    asked = boot.node.here / "run/data-sets/asked"
    assert {each.name for each in asked.iterdir()} == {"sets+imagenet", "sets+c4"}
    unit = (boot.node.here / "units/tidegate-data-sets.service").read_text()
    assert "ProtectSystem=strict" in unit
    assert f"ReadWritePaths={boot.node.here}/scratch/tidegate-data {asked.parent}\n" in unit


@pytest.mark.parametrize("tag", ["true", "false", "echo '*; $(reboot)'"])
def test_no_tag_fails_no_boot(boot: Boot, tag: str) -> None:
    assert boot.run(tag=tag) == STARTED

    assert not list((boot.node.here / "run/data-sets/asked").iterdir())


def test_a_job_s_prolog_and_epilog_never_fail(boot: Boot) -> None:
    boot.run()
    (boot.node.here / "bundle/files/data-sets.sh").write_text("exit 1\n")

    for name in ("prolog.d/70-data-sets.sh", "epilog.d/20-data-sets.sh"):
        env = {"SLURM_JOB_COMMENT": f"tidegate:data={PLACE}", "SLURM_JOB_ID": "7"}
        assert subprocess.run([boot.node.here / "etc" / name], env=env, check=False).returncode == 0


def test_a_job_whose_comment_was_changed_holds_its_data_no_longer_than_it_runs(boot: Boot) -> None:
    boot.run()
    used = boot.node.here / "run/data-sets/used/7"
    boot.node.job("prolog", "7", f"tidegate:data={PLACE}")
    assert used.exists()

    hook = boot.node.here / "etc/epilog.d/20-data-sets.sh"
    env = {"SLURM_JOB_COMMENT": "for the paper", "SLURM_JOB_ID": "7", "PATH": os.environ["PATH"]}
    subprocess.run([hook], env=env, check=True)

    assert not used.exists()


def test_a_node_without_a_disk_says_so_to_its_jobs(boot: Boot) -> None:
    (boot.node.here / "scratch/tidegate-data").rmdir()

    assert boot.run(has_disk=False) == "no disk of its own, so no data sets\n"
    assert not (boot.node.here / "etc/prolog.d").exists()


def test_a_folder_that_leads_elsewhere_is_not_written_to(boot: Boot) -> None:
    folder = boot.node.here / "scratch/tidegate-data"
    folder.rmdir()
    folder.symlink_to("/etc")

    assert boot.run().endswith("is not root's: no data sets\n")


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def real(node: Node, s3: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The real AWS CLI: what the programs are told, so that it asks the stand-in for S3."""
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": s3}
    aws = node.here / "bin/aws"
    real_one = Path(sys.executable).parent / "aws"
    aws.write_text(f'#!/bin/bash\necho "$*" >>{node.here}/calls\nexec {real_one} "$@"\n')
    return keys


def put_in_s3(endpoint: str, bucket: str, keys: list[str]) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )
    client.create_bucket(Bucket=bucket)
    for key in keys:
        client.put_object(Bucket=bucket, Key=key, Body=key.encode())


def test_the_real_cli_takes_odd_names_for_what_they_are(
    node: Node, real: dict[str, str], s3: str
) -> None:
    odd = ["a b'\"$(x).tar", "deep/ü .tar", "-rf", "complete"]
    put_in_s3(s3, "sets", [*(f"imagenet/{key}" for key in odd), "imagenet/", "imagenet2/no"])

    node.load(PLACE, **real)

    code, folder, said = node.asks(PLACE)
    assert (code, said) == (0, "")
    files = Path(folder)
    assert {str(each.relative_to(files)) for each in files.rglob("*") if each.is_file()} == set(odd)


def test_the_real_cli_writes_nothing_elsewhere(node: Node, real: dict[str, str], s3: str) -> None:
    program = node.here / "bundle/files/data-sets.sh"
    program.write_text(program.read_text().replace("TRIES=3", "TRIES=1"))
    put_in_s3(s3, "others", ["open/a", "open/../../../../out", "open/b/../../../../out"])

    node.load("s3://others/open", **real)

    assert not list(node.here.rglob("out"))
    assert "1 of 3 objects came: " in node.asks("s3://others/open")[2]
