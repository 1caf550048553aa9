"""Bundles: reproducible, whole, and with a graph that can be run."""

import gzip
import io
import tarfile
from dataclasses import replace

import pytest

from tests.userdata.bundles import opened
from tests.userdata.values import HEAD, MUNGE, NODE, SHARED, T4X1
from userdata.bundle import Stage, in_order
from userdata.render import MungeSecret, Shared, head_bundle, node_bundle


def stage(name: str, *needs: str) -> Stage:
    return Stage(name, "", needs, time_limit_s=60, wait_s="0")


def test_the_same_content_gives_the_same_bytes():
    assert node_bundle(NODE).archive == node_bundle(NODE).archive


def test_an_archive_tells_nothing_of_where_and_when_it_was_made():
    archive = node_bundle(NODE).archive

    assert archive[4:8] == bytes(4)  # gzip's time
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive))) as members:
        assert {(m.mtime, m.uid, m.gid, m.uname) for m in members} == {(0, 0, 0, "")}


def test_scripts_may_be_run_and_nothing_else():
    with tarfile.open(fileobj=io.BytesIO(node_bundle(NODE).archive)) as members:
        runnable = {m.name for m in members if m.mode == 0o755}

    assert runnable == {"boot.sh", "files/drain-sick.sh", "files/spot-watch.sh"}


def test_what_only_the_deployment_knows_changes_no_bundle():
    munge, shared = MungeSecret("other"), Shared("fs-9")
    node = replace(NODE, munge=munge, shared=shared, bus="other")
    head = replace(HEAD, munge=munge, shared=shared, bus="other")

    assert node_bundle(node).sha256 == node_bundle(NODE).sha256
    assert head_bundle(head).sha256 == head_bundle(HEAD).sha256


def test_an_instance_type_more_is_another_bundle():
    assert node_bundle(replace(NODE, shapes=(T4X1,))).sha256 != node_bundle(NODE).sha256


def test_a_setting_gives_the_time_for_tries():
    patient = replace(NODE, munge=replace(MUNGE, wait_s=77), shared=replace(SHARED, wait_s=99))

    rows = {
        line.split()[0]: line.split() for line in opened(node_bundle(patient))["graph"].splitlines()
    }

    assert rows["munge"][:3] == ["munge", "60", "77"]
    assert rows["shared"][:3] == ["shared", "40", "99"]


def test_a_stage_comes_after_what_it_needs():
    ordered = in_order([stage("c", "b"), stage("b", "a"), stage("a")])

    assert [each.name for each in ordered] == ["a", "b", "c"]


def test_stages_that_need_each_other_are_refused():
    with pytest.raises(ValueError, match=r"stages need each other: (a b a|b a b)"):
        in_order([stage("a", "b"), stage("b", "a")])


def test_a_need_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="stage a needs b, which is not there"):
        in_order([stage("a", "b")])
