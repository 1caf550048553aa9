# shellcheck shell=bash
# needs: packages
# only_with: CONTAINERS
# wait_s: 300
# time_limit_s: 900
# enroot and pyxis, in an image that is baked, on the head and on login nodes, where the system lacks
# them; a node has no time for it as it boots. enroot is NVIDIA's package, of its releases. pyxis is
# compiled: Slurm loads what was built for its own release alone (pyxis, README, "Installation"). Its
# source is one commit, so that nobody can put another in its place.

readonly ENROOT_VERSION=4.1.2 PYXIS_COMMIT=107519944221822ea1dace4db8e7234b2eaa4cd5 # v0.24.0
readonly ENROOT_AT=https://github.com/NVIDIA/enroot/releases/download
readonly PYXIS_AT=https://github.com/NVIDIA/pyxis.git
readonly TOOLS_AT=https://nvidia.github.io/libnvidia-container
readonly PREFIX=/usr/local SOURCE=$RUN_DIR/pyxis
# Beside the plugin, the Slurm that it was built for.
readonly BUILT_FOR=$PREFIX/lib/slurm/pyxis-built-for

# Of an image that gets no packages its owner takes care, and the stages that use these say what it lacks.
check() {
    [[ -z $PACKAGES ]] || { has_enroot && has_tools && has_pyxis; }
}

# Where containers run, and where root imports for all.
has_enroot() {
    [[ $ROLE == login || ($ROLE == head && -z $CONTAINER_CACHE) ]] || command -v enroot >/dev/null
}

# What shows GPUs to containers.
has_tools() {
    [[ $ROLE != image ]] || command -v nvidia-container-cli >/dev/null
}

# One that the image brings, or ours for this Slurm.
has_pyxis() {
    [[ -n $(pyxis) ]] && { [[ ! -e $BUILT_FOR ]] || [[ $(<"$BUILT_FOR") == "$(slurm_version)" ]]; }
}

slurm_version() {
    printf 'ClusterName=any\nSlurmctldHost=any\n' >"$RUN_DIR/any.conf"
    SLURM_CONF=$RUN_DIR/any.conf scontrol -V
}

is_apt() {
    command -v apt-get >/dev/null
}

apply() {
    ! is_apt || apt_get update || true
    has_enroot || install_enroot
    has_tools || install_tools
    has_pyxis || build_pyxis
}

add() {
    if is_apt; then
        apt_get install --no-install-recommends "$@"
    else
        dnf -q -y --setopt=retries=5 install "$@"
    fi
}

# enroot+caps lets people import images (enroot, doc/installation.md). Ubuntu's AppArmor lets programs
# make user namespaces by name, and the package brings that.
install_enroot() {
    local name file folder=$RUN_DIR/enroot
    mkdir -p "$folder"
    for name in enroot enroot+caps; do
        if is_apt; then
            file=${name}_$ENROOT_VERSION-1_$(dpkg --print-architecture).deb
        else
            file=$name-$ENROOT_VERSION-1.el8.$(uname -m).rpm
        fi
        curl -fsSL -m 120 --retry 3 -o "$folder/$file" "$ENROOT_AT/v$ENROOT_VERSION/$file"
    done
    add "$folder"/*
    rm -rf "$folder"
}

# Source: NVIDIA Container Toolkit, "Installing the NVIDIA Container Toolkit". An image that has the
# repository keeps its own word: apt ends at a second one with another key.
install_tools() {
    if is_apt && grep -rqsF "$TOOLS_AT" /etc/apt/sources.list.d; then
        :
    elif is_apt; then
        curl -fsS -m 20 --retry 3 -o /usr/share/keyrings/nvidia-container.asc "$TOOLS_AT/gpgkey"
        put_file /etc/apt/sources.list.d/nvidia-container.list 644 <<EOF_LIST
deb [signed-by=/usr/share/keyrings/nvidia-container.asc] $TOOLS_AT/stable/deb/$(dpkg --print-architecture) /
EOF_LIST
        apt_get update || true
    else
        curl -fsS -m 20 --retry 3 "$TOOLS_AT/stable/rpm/nvidia-container-toolkit.repo" |
            put_file /etc/yum.repos.d/nvidia-container-toolkit.repo 644
    fi
    add libnvidia-container-tools
}

# headers: the package with slurm/spank.h, of Debian's name, of SchedMD's or of slurm.spec's.
headers() {
    if ! is_apt; then
        echo "slurm-devel${SLURM_RELEASE:+-$SLURM_RELEASE.*}"
    elif [[ -n $(apt-cache madison slurm-smd-dev) ]]; then
        echo slurm-smd-dev
    else
        echo libslurm-dev
    fi
}

build_pyxis() {
    local c_library=libc6-dev
    is_apt || c_library=glibc-devel
    add git gcc make "$c_library" "$(headers)"
    rm -rf "$SOURCE"
    git init -q "$SOURCE"
    git -C "$SOURCE" fetch -q --depth 1 "$PYXIS_AT" "$PYXIS_COMMIT"
    git -C "$SOURCE" checkout -q "$PYXIS_COMMIT"
    make -s -C "$SOURCE" install "prefix=$PREFIX"
    slurm_version >"$BUILT_FOR"
    rm -rf "$SOURCE"
}
