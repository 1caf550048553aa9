# shellcheck shell=bash
# needs: quiesce
# wait_s: 900
# time_limit_s: 900
# The programs that the other stages call. An image of one's own has them all; AWS's and
# Canonical's get what they lack from their distribution's repositories.

missing() {
    local program
    for program in $PROGRAMS; do
        command -v "$program" >/dev/null || echo "$program"
    done
}

check() {
    [[ -z $(missing) ]]
}

apply() {
    if [[ -z $PACKAGES ]]; then
        refuse "the image lacks $(missing | paste -sd' ')"
    fi
    # Packages must not start what they bring: Munge would run with a key of its own.
    put_file /usr/sbin/policy-rc.d 755 <<<$'#!/bin/sh\nexit 101'
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    if command -v apt-get >/dev/null; then
        install_with apt
    else
        install_with dnf
    fi
    rm -f /etc/munge/munge.key
    if ! check; then
        echo "still missing: $(missing | paste -sd' ')"
        return 1
    fi
}

# install_with MANAGER: all at once; when that fails one by one, so that one bad package does not
# keep the others away and the log names it.
install_with() {
    local package
    "refresh_$1"
    # shellcheck disable=SC2086
    if "$1_install" $PACKAGES; then
        return 0
    fi
    for package in $PACKAGES; do
        "$1_install" "$package" || echo "not installed: $package"
    done
}

# Waits for who else holds the lock, and tries downloads again.
apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 \
        -o Acquire::Retries=3 install --no-install-recommends "$@"
}

refresh_apt() {
    [[ $(missing) != *mount.efs* ]] || add_efs_source || echo "no repository with mount.efs"
    apt-get -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 update || true
}

# Ubuntu has no package of EFS's mount helper, and AWS has a repository for it: the address, the
# suite and the key are those of its installer (efs-utils, INSTALL.md) and of ParallelCluster
# (cookbook, efs/partial/_install_from_repo_debian.rb). Not a new major version unasked.
add_efs_source() {
    local version key=/usr/share/keyrings/efs-utils
    version=$(sed -n 's/^VERSION_ID="\(.*\)"/\1/p' /etc/os-release)
    grep -qx ID=ubuntu /etc/os-release || return
    curl -fsS -m 20 --retry 3 -o "$key" "$EFS_HELPER_URL/efs-utils.gpg" || return
    # apt tells text from binary by the file's name.
    if grep -aq "BEGIN PGP" "$key"; then
        mv "$key" "$key.asc"
    else
        mv "$key" "$key.gpg"
    fi
    put_file /etc/apt/sources.list.d/efs-utils.list 644 <<EOF_LIST
deb [signed-by=$(echo "$key".???)] $EFS_HELPER_URL/repo/deb/ubuntu/$version $version main
EOF_LIST
    put_file /etc/apt/preferences.d/efs-utils 644 <<'EOF_PIN'
Package: amazon-efs-utils
Pin: version 3.*
Pin-Priority: 990
EOF_PIN
}

dnf_install() {
    dnf -q -y --setopt=retries=5 install "$@"
}

refresh_dnf() {
    :
}
