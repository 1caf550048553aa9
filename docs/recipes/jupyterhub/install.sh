#!/usr/bin/env bash
# Installs JupyterHub from the folder that this file is in, SHARED_DIR/jupyterhub (docs/jupyterhub.md).
# A second run changes nothing that is there.
#
#   install.sh notebooks    hooks.on_head_configured: what hub and notebooks run, into the shared folder
#   install.sh hub          hooks.on_login_configured: the hub, its proxy and its user
set -euo pipefail

folder=$(dirname "$(readlink -f "$0")")
readonly folder venv=$folder/venv wait_s=${WAIT_S:-900}
readonly packages=(jupyterhub==6.1.1 batchspawner==1.3.0 jupyterlab==4.6.6)
readonly as=/usr/local/sbin/jupyterhub-as unit=/etc/systemd/system/jupyterhub.service

# put FILE MODE: standard input, whole or not at all.
put() {
    install -m "$2" /dev/stdin "$1.new"
    mv "$1.new" "$1"
}

lacks() {
    ! command -v "$1" >/dev/null
}

fetch() {
    apt-get -q -q update
    DEBIAN_FRONTEND=noninteractive apt-get -q -q -y install --no-install-recommends "$@"
}

# Root writes there on the head alone; nodes and login nodes read.
notebooks() {
    [[ -e $venv/complete ]] || build
    install -Dm644 -t "$venv/etc/jupyter" "$folder/jupyter_server_config.py"
}

build() {
    python3 -c 'import ensurepip' 2>/dev/null || fetch python3-venv
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir "${packages[@]}"
    # Nodes may not write here, so what Python compiles is there before they ask.
    "$venv/bin/python" -m compileall -q "$venv/lib" || true
    touch "$venv/complete"
}

# The hub is nobody's superuser: by this it becomes one person for one of three commands.
# Who is a person has a home in the shared folder; the image's own users, of whom one may
# become root, have not.
become() {
    cat <<EOF
#!/bin/bash -p
# usage: jupyterhub-as PERSON sbatch|squeue|scancel ARGUMENT...
set -euo pipefail
PATH=/usr/sbin:/usr/bin:/sbin:/bin
IFS=: read -r name _ uid gid _ home _ < <(getent passwd -- "\$1")
if [[ \$name != "\$1" || \$home != ${folder%/*}/home/"\$name" || \$uid -lt 1000 ]]; then exit 3; fi
case \$2 in sbatch | squeue | scancel) ;; *) exit 2 ;; esac
exec setpriv --reuid "\$uid" --regid "\$gid" --init-groups -- "\${@:2}"
EOF
}

service() {
    cat <<EOF
[Unit]
Description=JupyterHub, whose notebooks are jobs of Slurm's
After=network-online.target munge.service tidegate-users.service
[Service]
User=jupyterhub
StateDirectory=jupyterhub
StateDirectoryMode=0700
UMask=0077
Environment=PATH=$venv/bin:/usr/local/bin:/usr/bin:/bin
# Where the proxy's package has its parts; Node.js that is not Ubuntu's own does not look there.
Environment=NODE_PATH=/usr/share/nodejs
ExecStart=$venv/bin/jupyterhub --config $folder/jupyterhub_config.py
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
EOF
}

# What `ssh -L 8000:127.0.0.1:8000 LOGIN jupyter-password` runs: the tunnel lasts as long as it does.
password() {
    cat <<EOF
#!/bin/sh
echo "http://127.0.0.1:8000 user \$(id -un), and the password for the next five minutes:"
munge -s jupyterhub -u jupyterhub
echo "Ctrl-C ends the tunnel, and leaves notebooks running."
exec cat >/dev/null
EOF
}

hub() {
    local missing=() waited_s=0
    ! lacks sudo || missing+=(sudo)
    ! lacks configurable-http-proxy || missing+=(node-configurable-http-proxy)
    ((${#missing[@]} == 0)) || fetch "${missing[@]}"
    id jupyterhub >/dev/null 2>&1 || useradd --system --home-dir /var/lib/jupyterhub jupyterhub
    become | put "$as" 755
    password | put /usr/local/bin/jupyter-password 755
    echo "jupyterhub ALL=(root) NOPASSWD:SETENV: $as" | put /etc/sudoers.d/jupyterhub 440
    service | put "$unit" 644
    # A first deployment boots the head at the same time.
    until [[ -e $venv/complete ]]; do
        ((waited_s < wait_s)) || { echo "no $venv: has the head run install.sh notebooks?"; exit 1; }
        sleep 5
        waited_s=$((waited_s + 5))
    done
    systemctl daemon-reload
    systemctl enable --quiet jupyterhub
    systemctl restart jupyterhub
}

case ${1:-} in
    notebooks | hub) "$1" ;;
    *)
        sed -n '5,6s/^# *//p' "$0" >&2
        exit 2
        ;;
esac
