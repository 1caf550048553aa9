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

# A file stays in one process, with the daemons that it started.
run_pytest() {
    pytest --dist loadfile --no-loadscope-reorder "$@"
}

said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
besides=()
# Runs on what the others leave of the processors; what it says comes last.
begin_beside() {
    (
        renice -n 10 "$BASHPID" >/dev/null
        "$@"
    ) >"$said/$1" 2>&1 &
    besides+=("$1:$!")
}

end_besides() {
    local name
    for name in "${besides[@]}"; do
        wait "${name#*:}" || failed+=("${name%:*}")
        cat "$said/${name%:*}"
    done
}

# The tests that start daemons, machines, deployments and programs wait for most of their time.
# The others, and the linters, only compute: beside them no processor is idle. Of these two processes
# are enough, and each that synthesizes starts a node of its own and lets it warm up.
readonly real=(tests/{e2e,boot,stack,contracts,local,local_iam,userdata})
compute() {
    run_pytest --numprocesses 2 "${real[@]/#/--ignore=}" tests
}

begin_beside lint
if [[ $# -gt 0 ]]; then
    check pytest run_pytest --numprocesses 8 "$@"
else
    begin_beside compute
    check "pytest, the real path" run_pytest --numprocesses 6 "${real[@]}"
fi
end_besides

if [[ ${#failed[@]} -gt 0 ]]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
