# shellcheck shell=bash
# needs: gpu
# time_limit_s: 120
# GPUs in containers, where the image has a runtime and NVIDIA's toolkit.

check() {
    [[ $GPUS == 0 ]] || ! command -v nvidia-ctk >/dev/null || ! command -v docker >/dev/null ||
        grep -qs nvidia /etc/docker/daemon.json
}

apply() {
    nvidia-ctk runtime configure --runtime=docker
    systemctl restart docker
}
