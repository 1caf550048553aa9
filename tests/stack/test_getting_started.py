"""docs/getting-started.md, followed word by word in an empty clone, with the file init writes."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests import make
from tests.assemblies import assembled
from tests.doc_commands import ROOT, commands
from tests.stack.test_docs import INSTEAD, Lambda
from tests.stack.world import stacked
from tidegate.cli.main import app
from tidegate.wire.config import load_cluster

PAGE = [each for each in commands() if each.page == "getting-started.md"]
OURS = [each.words[1:] for each in PAGE if each.words[0] == "tidegate"]
NEW = Path("clusters/new.yaml")
# Asks AWS itself; changes the shell; needs Image Builder, which moto has not.
ELSEWHERE = ("--live", "--install-completion", "image")


def test_the_page_speaks_of_the_file_that_it_made_and_of_no_other() -> None:
    text = (ROOT / "docs" / "getting-started.md").read_text()

    assert set(re.findall(r"clusters/[\w-]+\.yaml", text)) == {str(NEW)}
    assert set(re.findall(r"cdk deploy ([\w-]+)", text)) == {"tidegate-new"}
    assert OURS[0] == ["init", str(NEW)]


def test_the_page_works_word_by_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "clusters", tmp_path / "clusters")
    monkeypatch.chdir(tmp_path)
    steps = [words for words in OURS if not set(words) & set(ELSEWHERE)]

    for words in (each for each in steps if each[0] in ("init", "validate")):
        done = CliRunner().invoke(app, words, input="\n" * 20)
        assert done.exit_code == 0, done.output
    names = [load_cluster(path).cluster.name for path in Path("clusters").glob("*.yaml")]
    assert sorted(names) == sorted({*names, "new"}), "cdk synth refuses two of one name"

    assembly = assembled(NEW, tmp_path / "cdk.out")
    with stacked(assembly, NEW, starts=None) as world:
        world.report([make.job("1")])
        for words in (each for each in steps if each[0] not in ("init", "validate")):
            done = CliRunner().invoke(
                app,
                [typed for each in words if (typed := INSTEAD.get(each, each))],
                obj=lambda name: Lambda(world) if name == "lambda" else world.cloud.client(name),
                env=world.cloud.environment,
            )
            assert done.exit_code in (0, 3), done.output
