# shellcheck shell=bash
# needs: gpu scratch packages task_env
# time_limit_s: 120
# GPUs in containers: NVIDIA's toolkit for Docker where the image has both; and enroot with pyxis, for
# `srun --container-image`, where the cluster asks for it. Images lie on the scratch disk, in folders
# of each user's own. The Prolog makes them: enroot runs whatever it finds in one that is already
# there, and where users made them somebody else could be the first.

readonly ENROOT=/etc/enroot/enroot.conf.d/tidegate.conf TOLD=/etc/enroot/environ.d/20-tidegate.env
readonly PROLOG=/etc/tidegate/prolog.d/40-containers.sh EPILOG=/etc/tidegate/epilog.d/70-containers.sh
readonly RUNTIME=/run/enroot PYXIS=/run/pyxis SETTINGS=/etc/tidegate/container-cache

disk() {
    if [[ -d /scratch ]]; then echo /scratch/enroot; else echo /var/lib/enroot; fi
}

# Of the site's settings and these, enroot takes the site's. A squashfs that is kept is worth packing.
enroot_conf() {
    local disk
    disk=$(disk)
    cat <<EOF_CONF
ENROOT_RUNTIME_PATH $RUNTIME/user-\$(id -u)
ENROOT_CACHE_PATH $disk/cache-\$(id -u)
ENROOT_DATA_PATH $disk/data-\$(id -u)
ENROOT_TEMP_PATH $disk/temp-\$(id -u)
EOF_CONF
    [[ -z $CONTAINER_CACHE ]] ||
        echo 'ENROOT_SQUASH_OPTIONS -comp zstd -Xcompression-level 3 -b 1M -exit-on-error'
}

# For tidegate-import.sh.
settings() {
    local disk unused_days max_gib
    disk=$(disk)
    printf 'DISK=%q\n' "$disk"
    [[ -z $CONTAINER_CACHE ]] || {
        read -r unused_days max_gib <<<"$CONTAINER_CACHE"
        printf 'SHARED=%q UNUSED_DAYS=%q MAX_GIB=%q\n' "$SHARED_DIR/containers" "$unused_days" "$max_gib"
    }
}

prolog() {
    local disk
    disk=$(disk)
    printf '#!/bin/bash\nreadonly lock=%q folders=(%q %q %q %q %q)\n' "$RUNTIME/lock" "$RUNTIME/user" \
        "$disk"/{cache,data,temp,images}
    cat <<'END_OF_PROLOG'
# No job fails by this: one without a container needs none of them.
readonly uid=${SLURM_JOB_UID:-}
[[ $uid =~ ^[1-9][0-9]*$ ]] && exec 9>"$lock" && flock 9 || exit 0
for folder in "${folders[@]/%/-$uid}"; do
    [[ -L $folder || $(stat -c %u "$folder" 2>/dev/null) != "$uid" ]] || continue
    rm -rf "$folder"
    mkdir -m 700 "$folder" && chown "$uid" "$folder"
done
exit 0
END_OF_PROLOG
}

# What is left where pyxis and enroot did not live to remove it: half a squashfs, a container without a
# name, and, a day later, unpacked layers, of which nobody says whose job they were for.
epilog() {
    printf '#!/bin/bash\nreadonly disk=%q\n' "$(disk)"
    cat <<'END_OF_EPILOG'
readonly uid=${SLURM_JOB_UID:-} job=${SLURM_JOB_ID:-}
[[ $uid =~ ^[1-9][0-9]*$ && $job =~ ^[1-9][0-9]*$ ]] || exit 0
rm -f "$disk/images-$uid/$job".* "$disk/pyxis/$uid/$job".*
for container in "$disk/data-$uid/pyxis_$job".*; do
    [[ ! ${container#*"/pyxis_$job."} =~ ^[0-9]+$ ]] || rm -rf --one-file-system "$container"
done
find "$disk/temp-$uid" -mindepth 1 -maxdepth 1 -mtime +0 -exec rm -rf --one-file-system {} + 2>/dev/null
exit 0
END_OF_EPILOG
}

check() {
    { [[ $CONTAINERS != pyxis ]] || has_pyxis; } &&
        { ! is_docker_for_gpus || grep -qs nvidia /etc/docker/daemon.json; }
}

has_pyxis() {
    is_pyxis_linked && has_file "$ENROOT" enroot_conf && cmp -s "$TOLD" /etc/tidegate/task.env && [[ -d $RUNTIME ]] &&
        has_file "$PROLOG" prolog && has_file "$EPILOG" epilog && has_file "$SETTINGS" settings &&
        cmp -s files/tidegate-import.sh "$IMPORTER" && [[ $(readlink "$PYXIS") == "$(disk)/pyxis" ]]
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
    command -v enroot >/dev/null || refuse "the image lacks enroot, which containers: pyxis needs"
    [[ -n $(pyxis) ]] || refuse "the image lacks spank_pyxis.so, which containers: pyxis needs"
    link_pyxis
    if ((GPUS > 0)); then
        command -v nvidia-container-cli >/dev/null ||
            refuse "the image lacks nvidia-container-cli, without which containers see no GPU"
    fi
    [[ -z $CONTAINER_CACHE ]] || may_have_cache
    mkdir -p "${ENROOT%/*}"
    enroot_conf | put_file "$ENROOT" 644
    # Slurm's TaskProlog, which tells tasks of EFA, is not run where pyxis is: cdk/bootstrap.py.
    mkdir -p "${TOLD%/*}"
    put_file "$TOLD" 644 </etc/tidegate/task.env
    # Only root makes folders in these. slurm.conf may come to name the importer while a node runs.
    install -d -m 755 "$RUNTIME" "$(disk)" "$(disk)/pyxis" "${IMPORTER%/*}" "${PROLOG%/*}" "${EPILOG%/*}"
    keep_images_on_disk
    put_file "$IMPORTER" 755 <files/tidegate-import.sh
    settings | put_file "$SETTINGS" 644
    prolog | put_file "$PROLOG" 755
    epilog | put_file "$EPILOG" 755
}

# Without an importer pyxis packs an image into its runtime_path, /run/pyxis, which would be memory, a tenth
# of the node's on Ubuntu (its issues 41 and 53). It takes the folder that is there. Not by its option in
# plugstack.conf, which is one for all nodes: where their disk is differs.
keep_images_on_disk() {
    [[ -L $PYXIS ]] || rm -rf "$PYXIS"
    ln -sfn "$(disk)/pyxis" "$PYXIS"
}

may_have_cache() {
    has_importer || refuse "the image's pyxis knows no importer (0.21 does), which container_cache needs"
    enroot digest --help >/dev/null 2>&1 ||
        refuse "the image's enroot has no command digest (4.0 has), which container_cache needs"
}
