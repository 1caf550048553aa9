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
    apt-get -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 update || true
}

dnf_install() {
    dnf -q -y --setopt=retries=5 install "$@"
}

refresh_dnf() {
    :
}
