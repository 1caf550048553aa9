# shellcheck shell=bash
# needs: gpu scratch packages task_env
# time_limit_s: 120
# GPUs in containers: NVIDIA's toolkit for Docker where the image has both; and enroot with pyxis, for
# `srun --container-image`, where the cluster asks for it. Unpacked images lie on the scratch disk.

readonly ENROOT=/etc/enroot/enroot.conf.d/tidegate.conf TOLD=/etc/enroot/environ.d/20-tidegate.env

enroot_conf() {
    local disk=/var/lib/enroot
    # shellcheck disable=SC2016 # enroot expands it
    [[ ! -d /scratch ]] || disk=/scratch/enroot
    cat <<EOF_CONF
ENROOT_RUNTIME_PATH /run/enroot/user-\$(id -u)
ENROOT_CACHE_PATH $disk/cache-\$(id -u)
ENROOT_DATA_PATH $disk/data-\$(id -u)
EOF_CONF
}

check() {
    { [[ $CONTAINERS != pyxis ]] || { has_file "$ENROOT" enroot_conf &&
        cmp -s "$TOLD" /etc/tidegate/task.env && [[ -d /run/enroot ]]; }; } &&
        { ! is_docker_for_gpus || grep -qs nvidia /etc/docker/daemon.json; }
}

is_docker_for_gpus() {
    [[ $GPUS != 0 ]] && command -v nvidia-ctk >/dev/null && command -v docker >/dev/null
}

apply() {
    if [[ $CONTAINERS == pyxis ]]; then
        set_up_enroot
    fi
    if is_docker_for_gpus; then
        nvidia-ctk runtime configure --runtime=docker
        systemctl restart docker
    fi
}

set_up_enroot() {
    local disk
    command -v enroot >/dev/null || refuse "the image lacks enroot, which containers: pyxis needs"
    [[ -n $(pyxis) ]] || refuse "the image lacks spank_pyxis.so, which containers: pyxis needs"
    if ((GPUS > 0)); then
        command -v nvidia-container-cli >/dev/null ||
            refuse "the image lacks nvidia-container-cli, without which containers see no GPU"
    fi
    mkdir -p "${ENROOT%/*}"
    enroot_conf | put_file "$ENROOT" 644
    # Slurm's TaskProlog, which tells tasks of EFA, is not run where pyxis is: cdk/bootstrap.py.
    mkdir -p "${TOLD%/*}"
    put_file "$TOLD" 644 </etc/tidegate/task.env
    # Each user makes folders of their own in these.
    disk=$(sed -n 's|^ENROOT_DATA_PATH \(.*\)/.*|\1|p' "$ENROOT")
    install -d -m 1777 /run/enroot "$disk"
}
