# shellcheck shell=bash
# Python as a newer Debian has built it, sourced by setup.sh: for a machine that reaches Debian's packages but
# not where uv has its Pythons from. It stays in its folder, beside a C library of its own; the system only
# gets patchelf.

# The oldest release of Debian with 3.13.
readonly release_with_python=trixie
# With what the interpreter and its modules are linked to.
readonly python_libraries=(
    libc6 libbz2-1.0 libexpat1 libffi8 liblzma5 libncursesw6 libreadline8t64 libsqlite3-0 libssl3t64 libtinfo6
    libuuid1 libzstd1 zlib1g
)

# get_python 3.13 FOLDER
get_python() (
    local series=$1 folder=$2 build="$2.build"
    say "taking Python $series from Debian's packages ($release_with_python)"
    trap 'rm -rf "$build"' EXIT
    rm -rf "$build" "$folder"
    mkdir -p "$build/lists/partial"
    cd "$build" || return 1
    download_packages "python$series-minimal" "libpython$series-minimal" "libpython$series-stdlib" \
        "${python_libraries[@]}" >>"$build.log" 2>&1 </dev/null || return 1
    if [[ -n $(missing_packages patchelf) ]]; then
        install_packages patchelf || return 1
    fi
    lay_out "$series" "$folder" >>"$build.log" 2>&1
)

# Downloads packages of that release, as apt checks them: by Debian's signature. From the mirror
# that this machine has its own packages from, and without a change of what apt knows.
download_packages() {
    local mirror
    local -a apart
    # shellcheck disable=SC2016  # expanded by apt-get
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' 'Component: main' | sort -u | head -n 1)
    [[ -n $mirror ]] || return 1
    local key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$key] $mirror $release_with_python main" >sources.list
    apart=(--option "Dir::Etc::sourcelist=$PWD/sources.list" --option Dir::Etc::sourceparts=-
        --option "Dir::State::lists=$PWD/lists" --option Dir::Cache::pkgcache=
        --option Dir::Cache::srcpkgcache= --option APT::Sandbox::User=)
    apt-get --quiet "${apart[@]}" update && apt-get --quiet "${apart[@]}" download "$@"
}

# The interpreter finds its modules by its own place, and its libraries by what is written here.
lay_out() {
    local series=$1 folder=$2 package
    for package in *.deb; do
        dpkg-deb --extract "$package" . || return 1
    done
    mv usr "$folder" && ln -s "python$series" "$folder/bin/python3" || return 1
    local -a loader=("$folder"/lib/*/ld-linux-*.so.*)
    patchelf --force-rpath --set-rpath "$(dirname "${loader[0]}")" --set-interpreter "${loader[0]}" \
        "$folder/bin/python$series"
}
