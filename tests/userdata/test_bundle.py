"""Bundles: reproducible, whole, and with a graph that can be run."""

import ast
import gzip
import io
import re
import subprocess
import tarfile
from dataclasses import replace

import pytest

from local.boot.bundles import opened
from local.boot.values import AT, HEAD, NODE
from userdata.bundle import (
    HERE,
    RUNNER,
    Stage,
    in_order,
    read,
    without_comments,
    without_docstrings,
)
from userdata.node_bundle import FINDINGS
from userdata.render import (
    MungeSecret,
    Shared,
    head_bundle,
    head_parameter,
    node_bundle,
    node_user_data,
)

MODULES = sorted(name for name in opened(node_bundle()) if name.endswith(".py"))
SCRIPTS = sorted(str(each.relative_to(HERE)) for each in HERE.rglob("*.sh"))
KNOWS_PRETTY_PRINT = (
    subprocess.run(["bash", "--pretty-print", "/dev/null"], capture_output=True).returncode == 0
)


def stage(name: str, *needs: str) -> Stage:
    return Stage(name, "", needs, time_limit_s="60", wait_s="0")


def test_the_same_content_gives_the_same_bytes():
    assert node_bundle().archive == node_bundle().archive
    assert head_bundle(HEAD).archive == head_bundle(HEAD).archive


def test_an_archive_tells_nothing_of_where_and_when_it_was_made():
    bundle = node_bundle()

    assert bundle.archive[4:8] == bytes(4)  # gzip's time
    assert gzip.decompress(bundle.archive) == bundle.tar
    with tarfile.open(fileobj=io.BytesIO(bundle.tar)) as members:
        assert {(m.mtime, m.uid, m.gid, m.uname) for m in members} == {(0, 0, 0, "")}


def test_scripts_may_be_run_and_nothing_else():
    with tarfile.open(fileobj=io.BytesIO(node_bundle().tar)) as members:
        runnable = {m.name for m in members if m.mode == 0o755}

    assert runnable == {
        *(
            "boot.sh",
            "files/health-check.sh",
            "files/gpu-use.sh",
            "files/health-watch.sh",
            "files/gpu-reset.sh",
            "files/efa-metrics.sh",
        ),
        "files/tidegate-import.sh",
        *("files/spot-watch.sh", "files/head-watch.sh", "files/assume-role.sh"),
        *("files/data-sets.sh", "files/tidegate-data.sh"),
        "files/early.sh",
    }


def test_what_only_the_deployment_knows_changes_no_bundle():
    munge, shared = MungeSecret("other"), Shared("fs-9")
    head = replace(HEAD, munge=munge, shared=shared, bus="other")

    assert head_bundle(head).sha256 == head_bundle(HEAD).sha256


@pytest.mark.parametrize(
    ("bundle", "role", "told"),
    [
        (node_bundle(), "node", node_user_data(NODE, AT)),
        (head_bundle(HEAD), "head", head_parameter(HEAD, AT)),
    ],
)
def test_every_setting_that_gives_the_time_for_tries_is_told(bundle, role, told):
    waits = [line.split()[2] for line in opened(bundle)[f"graph.{role}"].splitlines()]
    named = {wait for wait in waits if not wait.isdigit()}

    assert {"MUNGE_WAIT_S", "SHARED_WAIT_S"} <= named
    assert {name for name in named if not re.search(rf"(?m)^{name}=\d+$", told)} == set()


def test_what_may_run_beside_a_job_is_tried_again():
    """A stage that slurmd does not wait for; a node that gives up ends the job that has it."""
    rows = [line.split() for line in opened(node_bundle())["graph.node"].splitlines()]
    needs = {name: set(words) for name, _, _, _, *words in rows}
    before: set[str] = set()
    while more := {each for name in (before or {"slurmd"}) for each in needs[name]} - before:
        before |= more

    assert [name for name, _, wait_s, *_ in rows if name not in before and wait_s == "0"] == []


def test_a_stage_comes_after_what_it_needs():
    ordered = in_order([stage("c", "b"), stage("b", "a"), stage("a")])

    assert [each.name for each in ordered] == ["a", "b", "c"]


def test_stages_that_need_each_other_are_refused():
    with pytest.raises(ValueError, match=r"stages need each other: (a b a|b a b)"):
        in_order([stage("a", "b"), stage("b", "a")])


def test_a_need_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="stage a needs b, which is not there"):
        in_order([stage("a", "b")])


def test_what_only_looks_like_a_comment_stays():
    """A script in a script may have lines that a program reads."""
    script = "#!/bin/bash\n# why\n#\ncat <<END\n#SBATCH -N 1\n    #include x\n  # why\nEND\n"

    assert without_comments(script) == (
        "#!/bin/bash\ncat <<END\n#SBATCH -N 1\n    #include x\nEND\n"
    )


def parsed(script: str) -> list[str]:
    """As bash understands it; comments are left where they are part of a text."""
    told = ["bash", "--pretty-print", "/dev/stdin"]
    done = subprocess.run(told, input=script, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if not re.match(r"\s*(# |#?$)", line)]


@pytest.mark.skipif(not KNOWS_PRETTY_PRINT, reason="bash 5.2 has --pretty-print")
@pytest.mark.parametrize("path", SCRIPTS, ids=str)
def test_a_script_without_its_comments_runs_the_same_lines(path):
    """A comment within a line that goes on, for one, ends it; without the comment it goes on."""
    assert parsed(without_comments(read(path))) == parsed(read(path))


@pytest.mark.skipif(not KNOWS_PRETTY_PRINT, reason="bash 5.2 has --pretty-print")
def test_a_line_that_a_comment_ends_is_seen():
    script = "echo a \\\n# why\nrm b\n"

    assert parsed(without_comments(script)) != parsed(script)


def meant(module: str) -> str:
    """What Python makes of a module, its docstrings taken for nothing."""
    tree = ast.parse(module)
    for node in documented(tree):
        node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def documented(tree: ast.Module) -> list[ast.Module | ast.ClassDef | ast.FunctionDef]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = [each for each in ast.walk(tree) if isinstance(each, kinds)]
    return [each for each in found if ast.get_docstring(each)]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_without_its_docstrings_does_the_same(name):
    """`listing.py` and `sign.py` are the runner's, all others come from the nodes' folder."""
    source = read(name if name in RUNNER else f"node/{name.removeprefix('files/')}")
    packed = opened(node_bundle())[name]

    assert meant(packed) == meant(source)
    assert documented(ast.parse(source))
    assert not documented(ast.parse(packed))


def test_text_that_only_looks_like_a_docstring_stays():
    module = (
        '"""Of the module,\n\nwith more."""\n\n# why\nX = """\n    #SBATCH\n"""\n\n\n'
        'class A(Exception):\n    """Alone."""\n\n\n'
        'def f():\n    """Of f."""\n    "no docstring"\n    return "# text"  # why\n'
    )

    assert without_docstrings(module) == (
        '\nX = """\n    #SBATCH\n"""\n\n\n'
        "class A(Exception):\n    pass\n\n\n"
        'def f():\n    "no docstring"\n    return "# text"  # why\n'
    )


def test_nodes_have_of_the_findings_what_they_judge_by():
    packed = opened(node_bundle())["files/findings"].splitlines()
    said = {" ".join(line.split()[:2]): line for line in packed}

    assert said["xid 79"] == "xid 79 reboot fatal GPU has fallen off the bus"
    assert said["xid 13"] == "xid 13 ignore"
    assert said["gpu ecc"] == "gpu ecc reset,diag degraded boot,run,end"
    assert len(packed) == len(
        [line for line in FINDINGS.read_text().splitlines() if not line.startswith("#")]
    )
