# shellcheck shell=bash
# Python built from Debian's own source package, sourced by setup.sh: for a machine that reaches
# Debian's packages but not where uv has its Pythons from. Two or three minutes of processor time.

# The release of Debian whose source package there is of a Python: the oldest with 3.13.
readonly release_with_python=trixie
readonly python_build_packages=(
    gcc libc6-dev make xz-utils libbz2-dev libffi-dev liblzma-dev libsqlite3-dev libssl-dev zlib1g-dev
)

# build_python 3.13 FOLDER
build_python() (
    local series=$1 folder=$2 build="$2.build"
    install_packages "${python_build_packages[@]}" || return 1
    say "building Python $series of Debian's sources"
    trap 'rm -rf "$build"' EXIT
    rm -rf "$build" "$folder"
    mkdir -p "$build/lists/partial"
    cd "$build" || return 1
    { get_source "python$series" && compile_python "$folder"; } >>"$build.log" 2>&1 </dev/null
)

# Downloads a source package of that release, as apt checks it: by Debian's signature. From the
# mirror that this machine has its own packages from, and without a change of what apt knows.
get_source() {
    local mirror
    local -a apart
    # shellcheck disable=SC2016  # expanded by apt-get
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' 'Component: main' | sort -u | head -n 1)
    [[ -n $mirror ]] || return 1
    local key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb-src [signed-by=$key] $mirror $release_with_python main" >sources.list
    apart=(--option "Dir::Etc::sourcelist=$PWD/sources.list" --option Dir::Etc::sourceparts=-
        --option "Dir::State::lists=$PWD/lists" --option Dir::Cache::pkgcache=
        --option Dir::Cache::srcpkgcache= --option APT::Sandbox::User=)
    apt-get --quiet "${apart[@]}" update && apt-get --quiet "${apart[@]}" source --download-only "$1"
}

# Without tests of its own, and without pip, which uv does without.
compile_python() {
    tar -x -f python3*.orig.tar.xz &&
        cd Python-3*/ &&
        ./configure --quiet --prefix="$1" --disable-test-modules --without-ensurepip &&
        make --silent --jobs="$(nproc)" &&
        make --silent install
}
