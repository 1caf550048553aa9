#!/usr/bin/env bash
# Tries the recipe of docs/jupyterhub.md on real JupyterHub, Slurm and Munge, in namespaces: fetches its
# packages (400 MiB, once), then runs tests/boot/jupyterhub_world.py. Root; six minutes, later four.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly shared=/var/tmp/tidegate-jupyterhub-shared build=/var/tmp/tidegate-jupyterhub-shared.build
readonly recipe=docs/recipes/jupyterhub

# What the head's hook does, in an overlay over this computer's root.
if [[ ! -e $shared ]]; then
    mkdir -p "$build"/{upper,work,root}
    trap 'umount -R "$build/root" 2>/dev/null; rm -rf "$build"' EXIT
    mount -t overlay overlay -o "lowerdir=/,upperdir=$build/upper,workdir=$build/work" "$build/root"
    mount -t proc proc "$build/root/proc"
    mount --bind /dev "$build/root/dev"
    mkdir -p "$build/root/shared"
    cp -r "$recipe" "$build/root/shared/jupyterhub"
    chroot "$build/root" /shared/jupyterhub/install.sh notebooks
    umount -R "$build/root"
    mv "$build/upper/shared/jupyterhub" "$shared"
fi
scripts/layer.sh jupyterhub
cp "$recipe"/* "$shared"
"$shared/install.sh" notebooks # what it lacks of this version of the recipe
exec .venv/bin/python -m tests.boot.jupyterhub_world "$shared"
