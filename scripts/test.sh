#!/usr/bin/env bash
# All checks: lint, format, types, shell, tests. Everything runs even when something fails
# before it; pytest comes last and lists what could not run here.
#
#   scripts/test.sh tests/wire      the arguments go to pytest
#   scripts/test.sh --lint          everything but pytest
#   TIDEGATE_REQUIRE_REAL=1         a test that needs real Slurm may not be left out
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
PATH="$PWD/.venv/bin:$PATH"

failed=()
check() {
    local name=$1
    shift
    echo "== $name"
    "$@" || failed+=("$name")
}

# Every shell script of the repository, by its first line or its name; goldens are made by code.
shell_scripts() {
    find . \( -name '.?*' ! -name .ci -o -name node_modules -o -name cdk.out -o -name golden \) -prune -o \
        -type f ! -name '*.py' -print0 |
        xargs -0 awk 'FNR == 1 && (/^#!.*sh( |$)/ || FILENAME ~ /\.sh$/) {print FILENAME} {nextfile}'
}

check_shell() {
    if ! command -v shellcheck >/dev/null; then
        export TIDEGATE_NOT_RUN="shellcheck: is not installed"
        return 0
    fi
    shell_scripts | xargs shellcheck --external-sources --source-path=SCRIPTDIR
}

check ruff ruff check --quiet
check format ruff format --check --quiet
check mypy mypy
# The head runs the agent on its own Python.
check "mypy for Python 3.12" mypy --python-version 3.12 tidegate/agent
check shellcheck check_shell
if [[ ${1:-} != --lint ]]; then
    # Most of the real path waits; a file stays in one process, with the daemons that it started.
    check pytest pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder "$@"
fi

if [[ ${#failed[@]} -gt 0 ]]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
