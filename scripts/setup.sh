#!/usr/bin/env bash
# Makes this checkout runnable: uv, Python 3.13, the locked packages, and for the real path
# Slurm and its company from Debian. Running it again costs little and changes nothing.
#
#   scripts/setup.sh             everything
#   SLURM=sim scripts/setup.sh   only what the simulated path needs: no apt, no root
#
# uv is kept in .tools/, Python packages in .venv/, the CDK's command line in node_modules/;
# all are deleted by `make clean`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly tools="$PWD/.tools"
readonly python_series=3.13
readonly oldest_uv=0.7.0 # older ones cannot read our uv.lock

# shellcheck source=scripts/debian.sh
source scripts/debian.sh
# shellcheck source=scripts/python_of_debian.sh
source scripts/python_of_debian.sh

say() { printf 'setup: %s\n' "$*"; }
warn() { printf 'setup: %s\n' "$*" >&2; }
fail() {
    warn "$1"
    shift
    [[ $# -eq 0 ]] || printf '         %s\n' "$@" >&2
    exit 1
}

# Whether this uv starts (a pyenv shim may not) and is new enough.
is_good_uv() {
    local version
    version=$("$1" --version 2>/dev/null | awk '{print $2}') || return 1
    [[ -n $version && $(printf '%s\n' "$oldest_uv" "$version" | sort -V | head -n 1) == "$oldest_uv" ]]
}

# Prints pyenv's interpreters of a series: of the variable, of this HOME, and of the account's own
# home, which HOME need not be. Its shims on the PATH fail unless the series is the active one.
pyenv_pythons() {
    local root found account_home
    account_home=$(eval "echo ~$(id -un)")
    for root in "${PYENV_ROOT:-}" "${HOME:-}/.pyenv" "$account_home/.pyenv"; do
        for found in "$root/versions/$1".*/bin/python3; do
            [[ ! -x $found ]] || echo "$found"
        done
    done
}

# Prints the interpreters that could carry uv, the likeliest first.
pythons() {
    local found
    for found in python3 python3.13 python3.12 python3.11 python; do
        command -v "$found" || true
    done
    pyenv_pythons 3
}

# Installs uv into .tools with this interpreter. `--target` is allowed where Debian's pip
# refuses to touch the system (PEP 668); without pip a venv may still have one.
put_uv_into_tools() {
    local python=$1 log="$tools/uv.log"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null || return 1
    rm -rf "$tools/uv"
    "$python" -m pip install --quiet --target "$tools/uv" uv >>"$log" 2>&1 ||
        { "$python" -m venv --clear "$tools/uv" >>"$log" 2>&1 &&
            "$tools/uv/bin/python" -m pip install --quiet uv >>"$log" 2>&1; } ||
        return 1
    is_good_uv "$tools/uv/bin/uv"
}

try_every_python() {
    local python
    while read -r python; do
        ! put_uv_into_tools "$python" || return 0
    done < <(pythons)
    return 1
}

# Sets `uv`: our own, the user's, or a new one in .tools.
find_uv() {
    for uv in "$tools/uv/bin/uv" uv "${HOME:-}/.local/bin/uv"; do
        ! is_good_uv "$uv" || return 0
    done
    uv="$tools/uv/bin/uv"
    say "putting uv into .tools"
    mkdir -p "$tools"
    : >"$tools/uv.log"
    ! try_every_python || return 0
    if is_debian && can_be_root && install_packages python3-venv; then
        ! try_every_python || return 0
    fi
    fail "uv $oldest_uv or newer is needed, and no Python here could install it (.tools/uv.log)." \
        "apt-get install python3-venv      (Debian, Ubuntu; then start again)" \
        "https://docs.astral.sh/uv/        (other ways to get uv)"
}

is_python() {
    [[ -n $1 ]] && "$1" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$python_series')" \
        2>/dev/null
}

# Whether it was built with the compiler's profile of what it does. Without, as pyenv builds it
# unless it is told, everything takes nearly twice as long.
is_optimized() {
    "$1" -c 'import sys, sysconfig
sys.exit("--enable-optimizations" not in sysconfig.get_config_var("CONFIG_ARGS"))'
}

download_python() {
    say "downloading Python $python_series with uv"
    mkdir -p "$tools"
    UV_HTTP_RETRIES=1 "$uv" python install "$python_series" >"$tools/python.log" 2>&1 &&
        python=$("$uv" python find "$python_series")
}

# Sets `python`: a good one that is here, one that can be had, a slow one that is here.
find_python() {
    local -a slow=()
    python="$tools/python/bin/python3"
    ! is_python "$python" || return 0
    python=$(UV_PYTHON_DOWNLOADS=never "$uv" python find "$python_series" 2>/dev/null || true)
    ! is_python "$python" || return 0
    while read -r python; do
        is_python "$python" || continue
        ! is_optimized "$python" || return 0
        slow+=("$python")
    done < <(pyenv_pythons "$python_series")
    ! download_python || return 0
    if is_debian && can_be_root; then
        if [[ ${#slow[@]} -eq 0 ]] && install_packages "python$python_series" 2>/dev/null; then
            python="/usr/bin/python$python_series"
            ! is_python "$python" || return 0
        fi
        if get_python "$python_series" "$tools/python"; then
            python="$tools/python/bin/python3"
            ! is_python "$python" || return 0
        fi
    fi
    if [[ ${#slow[@]} -gt 0 ]]; then
        python=${slow[0]}
        return 0
    fi
    head -n 3 "$tools/python.log" >&2
    fail "Python $python_series is needed, and uv could not download it. Any of these will do:" \
        "$uv python install $python_series      (needs the internet)" \
        "pyenv install $python_series           (builds it)" \
        "apt-get install python$python_series   (Debian 13 or newer)"
}

sync_packages() {
    [[ -x .venv/bin/python ]] || say "installing the Python packages into .venv"
    "$uv" sync --quiet --locked --python "$python" ||
        fail "the Python packages could not be installed (see above)."
}

# The CDK's command line, on the virtual environment's node, and bytecode for what the app
# imports of the CDK: its modules are so large that reading them without takes seconds, and
# where PYTHONDONTWRITEBYTECODE is set they would never get any.
sync_cdk() {
    local stamp=node_modules/.tidegate-stamp
    if [[ -e $stamp && $(cat package-lock.json uv.lock | cksum) == "$(<"$stamp")" ]]; then
        return 0
    fi
    say "installing the CDK's command line"
    mkdir -p "$tools"
    # As uv does (pyproject.toml): what this machine trusts, a company's own authority too.
    PATH="$PWD/.venv/bin:$PATH" NODE_USE_SYSTEM_CA=1 \
        .venv/bin/npm ci --no-progress >"$tools/npm.log" 2>&1 ||
        fail "the CDK's command line could not be installed (.tools/npm.log)."
    PATH="$PWD/.venv/bin:$PATH" env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -c 'import cdk.app'
    cat package-lock.json uv.lock | cksum >"$stamp"
}

# Slurm and its company, for the real path. Not having them is no failure: the simulated
# path needs none, and `make test` says what it left out.
add_slurm() {
    local -a missing
    if [[ ${SLURM:-auto} == sim ]]; then
        return 0
    fi
    if ! is_debian; then
        warn "not a Debian or Ubuntu system: Slurm is simulated here."
        return 0
    fi
    mapfile -t missing < <(missing_packages "${real_path_packages[@]}")
    if [[ ${#missing[@]} -eq 0 ]]; then
        return 0
    fi
    if can_be_root && install_packages "${missing[@]}"; then
        return 0
    fi
    warn "for real Slurm daemons run this as root (they stay off):"
    warn "  apt-get install --no-install-recommends ${missing[*]}"
    warn "until then Slurm is simulated."
}

# A browser for the one test that opens the replay's report. Everything else works without.
add_browser() {
    local -a missing
    if [[ ${SLURM:-auto} == sim ]] || ! is_debian; then
        return 0
    fi
    mapfile -t missing < <(missing_packages "${browser_packages[@]}")
    if [[ ${#missing[@]} -eq 0 ]] || { can_be_root && install_packages "${missing[@]}"; }; then
        return 0
    fi
    warn "reports are not opened in a browser by the tests; for that run this as root:"
    warn "  apt-get install --no-install-recommends ${missing[*]}"
}

trap 'exit 130' INT TERM HUP
find_uv
find_python
sync_packages
sync_cdk
add_slurm
add_browser
say "ready, on $(.venv/bin/python --version) of $python"
