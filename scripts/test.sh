#!/usr/bin/env bash
# All checks: lint, format, types, shell, tests. Everything runs even when something else
# fails; pytest lists what could not run here.
#
#   scripts/test.sh tests/wire      the arguments go to pytest
#   scripts/test.sh --lint          everything but pytest
#   TIDEGATE_REQUIRE_REAL=1         a test that needs real Slurm may not be left out
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
PATH="$PWD/.venv/bin:$PATH"
# The tests start hundreds of Pythons; one that finds no bytecode reads moto and the CDK for seconds.
unset PYTHONDONTWRITEBYTECODE

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

# pytest tells it at its end.
command -v shellcheck >/dev/null || export TIDEGATE_NOT_RUN="shellcheck: is not installed"

check_shell() {
    [[ -n ${TIDEGATE_NOT_RUN:-} ]] ||
        shell_scripts | xargs shellcheck --external-sources --source-path=SCRIPTDIR
}

lint() {
    check ruff ruff check --quiet
    check format ruff format --check --quiet
    check mypy mypy
    # The head runs the agent on its own Python.
    check "mypy for Python 3.12" mypy --python-version 3.12 tidegate/agent
    check shellcheck check_shell
    [[ ${#failed[@]} -eq 0 ]] || echo "failed: ${failed[*]}"
    return "${#failed[@]}"
}

if [[ ${1:-} == --lint ]]; then
    lint
    exit
fi

# Most of the real path waits, so the linters run beside it; what they say comes last. A file
# stays in one process, with the daemons that it started.
said=$(mktemp)
trap 'rm -f "$said"' EXIT
lint >"$said" 2>&1 &
linting=$!
check pytest pytest --numprocesses 8 --dist loadfile --no-loadscope-reorder "$@"
wait "$linting" || failed+=(lint)
cat "$said"

if [[ ${#failed[@]} -gt 0 ]]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
