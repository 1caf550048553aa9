"""What all stages of a boot use, run by bash."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

LIB = Path(__file__).parents[2] / "userdata" / "lib.sh"
GERMAN = "de_DE.UTF-8"


@pytest.mark.skipif(not shutil.which("localedef"), reason="localedef makes the language")
def test_a_boot_is_timed_in_an_image_whose_language_writes_a_comma(tmp_path: Path) -> None:
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / GERMAN],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("the sources of languages are not installed")
    env = {"PATH": os.environ["PATH"], "LOCPATH": str(tmp_path), "LC_ALL": GERMAN}

    def said(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, check=True, env=env
        )
        return done.stdout.strip()

    assert "," in said("echo $EPOCHREALTIME")
    now_ms = int(said(f"source {LIB}; set_now_ms; echo $now_ms"))
    assert 0 <= time.time() - now_ms / 1000 < 60
    clock = said(
        f"source {LIB}; eval \"$(declare -f console | sed 's|>> */dev/console||')\"; console x"
    )
    assert re.fullmatch(r"tidegate \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z x", clock)


def applied(stage: str, imds: str) -> subprocess.CompletedProcess[str]:
    """A stage whose metadata service is this function; it ends before it touches a file."""
    script = (
        f"source {LIB}; source {LIB.parent}/{stage}\n"
        f"imds() {{ {imds}; }}\n"
        'put_fact() { echo "$1=$2"; [[ -n $2 ]] || exit 9; }\n'
        "row_of() { ROW='g5 4 1 1 a10g 1 0 0 0 gpu 1'; }\n"
        "INSTANCE_TYPE=g5.xlarge SHAPES='' POOLS=''\n"
        "apply"
    )
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("settings", "facts", "code"),
    [
        ("LUSTRE=fs@tcp:/x", "", 0),
        ("LUSTRE=''", "", 1),
        ("", "LUSTRE=0", 1),
        ("LUSTRE=''", "LUSTRE=2", 0),
        ("LUSTER=x", "", 127),  # what nobody tells is our own mistake: nothing is left out for it
    ],
)
def test_a_stage_is_left_out_where_its_setting_or_fact_says_nothing(
    tmp_path, settings, facts, code
) -> None:
    """By the runner, before a process is started for it."""
    (tmp_path / "facts").write_text(facts)
    runner = (LIB.parent / "boot.sh").read_text()
    (function,) = re.findall(r"^is_wanted\(\) \{\n.*?^\}\n", runner, re.MULTILINE | re.DOTALL)

    asks = f"set -u; RUN_DIR={tmp_path} {settings}\n{function}is_wanted -; is_wanted LUSTRE"

    assert subprocess.run(["bash", "-c", asks], check=False).returncode == code


def test_every_stage_that_is_left_out_names_what_is_told(tmp_path: Path) -> None:
    told = "".join(each.read_text() for each in LIB.parent.rglob("*.py")) + LIB.read_text()
    told += "".join(each.read_text() for each in LIB.parent.rglob("*.sh"))
    names = set(re.findall(r"^# only_with: (.*)$", told, re.MULTILINE))

    assert names >= {"LUSTRE", "FABRIC", "LAYOUT", "ACCOUNTING"}
    for name in names:
        assert re.search(rf'"{name}": |put_fact {name} |\b{name}=', told), name


@pytest.mark.parametrize(
    ("content", "printed", "is_held"),
    [
        ("a\n b\\n\n", "a\n b\\n", True),
        ("a\n", "a\n\n", True),  # as $(...) has it
        ("a", "a", False),
        ("a\n", "a\nb", False),
        ("a\nb\n", "a", False),
        ("a\n\0", "a", False),
        (None, "", False),
    ],
)
def test_a_file_holds_exactly_what_a_command_prints(tmp_path, content, printed, is_held) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f'. {LIB}; has_file "$0" printf %s "$1"', file, printed],
        check=False,
    )

    assert (done.returncode == 0) is is_held


def test_a_file_is_put_whole_and_an_equal_one_stays(tmp_path: Path) -> None:
    def put(text: str, mode: str, redirection: str) -> tuple[str, str]:
        script = f'. {LIB}; printf %s "$1" >told; put_file "$0/file" {mode} {redirection}'
        argv = ["bash", "-euo", "pipefail", "-c", script, str(tmp_path), text]
        subprocess.run(argv, cwd=tmp_path, check=True)
        file = tmp_path / "file"
        return oct(file.stat().st_mode)[-3:], file.read_text()

    long = "y" * 99_999
    assert put("x", "600", "<told") == ("600", "x")
    assert put("x", "644", '<<<"$1"') == ("644", "x\n")
    assert put(long, "755", "< <(cat told)") == ("755", long)
    assert put(long, "600", "< <(cat told)") == ("755", long)
    assert put(long, "700", '<<<"$1"') == ("700", f"{long}\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "told"]


@pytest.mark.parametrize(
    ("stage", "fact", "imds"),
    [
        ("both/identity.sh", "AWS_REGION", "echo i-0123456789abcdef0; return 22"),
        ("both/identity.sh", "INSTANCE_TYPE", "printf 'i-0123456789abcdef0\\nus-east-1\\nx\\n\\n'"),
        ("node/shape.sh", "MARKET", "return 28"),
    ],
)
def test_what_the_metadata_service_does_not_answer_ends_the_try(stage, fact, imds) -> None:
    """Put down as empty it would be so in every later try, and for all stages after it."""
    done = applied(stage, imds)

    assert done.returncode not in (0, 9)
    assert f"{fact}=" not in done.stdout


def test_the_questions_of_a_boot_have_one_token(tmp_path: Path) -> None:
    curl = tmp_path / "curl"
    curl.write_text('#!/bin/bash\necho "$*" >>"$0.said"\necho answer\n')
    curl.chmod(0o755)
    asks = """
        . "$0"; export IMDS_TOKEN=$(imds_token)
        for n in 1 2 3; do bash -c '. "$0"; answer=$(imds y)' "$0"; done
    """

    subprocess.run(
        ["bash", "-c", asks, LIB],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=True,
    )

    said = (tmp_path / "curl.said").read_text().splitlines()
    assert ["api/token" in line for line in said] == [True, False, False, False]
    assert all("X-aws-ec2-metadata-token: answer" in line for line in said[1:])


@pytest.mark.parametrize(
    ("answer", "code", "gate"),
    [
        ("printf 'drain\\n200'", 0, "drain"),
        ("printf '\\n404'; exit 22", 0, ""),
        ("printf '\\n503'; exit 22", 22, ""),
        ("printf '\\n000'; exit 28", 28, ""),
    ],
)
def test_only_a_404_says_that_a_tag_is_not_there(tmp_path: Path, answer, code, gate) -> None:
    """A gang's node whose question stayed open joined without its gate."""
    curl = tmp_path / "curl"
    curl.write_text(f"#!/bin/sh\n{answer}\n")
    curl.chmod(0o755)

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", '. "$0"; IMDS_TOKEN=x; imds_if_any tags', LIB],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout.strip()) == (code, gate)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        '\\ "quoted" \\" & \\n',
        "-n",
        "$(id) `id` *",
        "two\nlines\tand\x1b[0m",
        "grüßt",
        b"\xff",
    ],
)
def test_any_word_is_a_string_of_json(text: str | bytes) -> None:
    word = os.fsencode(text)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f'source {LIB}; quoted "$1"', "-", word],
        capture_output=True,
        check=True,
    )

    assert json.loads(done.stdout).encode(errors="surrogateescape") == word


def test_a_plain_word_needs_no_python() -> None:
    done = subprocess.run(
        ["bash", "-c", f"source {LIB}; PATH=; quoted 'a \"b\"'"], capture_output=True, check=True
    )

    assert done.stdout == b'"a \\"b\\""\n'
