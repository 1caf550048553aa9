# shellcheck shell=bash
# Debian's packages, sourced by setup.sh: nothing is started, enabled or removed.

# shellcheck disable=SC2034  # used by setup.sh
readonly real_path_packages=(
    slurmctld slurmd slurm-client slurmdbd mariadb-server munge python3
    nftables dnsmasq-base iproute2 libnss-extrausers
    prometheus prometheus-node-exporter openssh-server openssh-client
    jq curl procps util-linux shellcheck locales
)

# shellcheck disable=SC2034  # used by setup.sh
readonly browser_packages=(chromium fonts-dejavu-core)

readonly apt_log="$PWD/.tools/apt.log"
readonly apt_begun="$PWD/.tools/apt.begun"
readonly policy=/usr/sbin/policy-rc.d
readonly policy_mark="# written by Tidegate's scripts/setup.sh for the duration of an install"

is_debian() {
    command -v apt-get >/dev/null && command -v dpkg-query >/dev/null
}

can_be_root() {
    [[ $EUID -eq 0 ]] || sudo -n true 2>/dev/null
}

as_root() {
    if [[ $EUID -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

missing_packages() {
    local package
    for package in "$@"; do
        [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
            echo "$package"
    done
}

# Install packages without starting or enabling their services. `--no-remove`: a MySQL
# server that is already here must not give way to MariaDB.
install_packages() (
    mkdir -p "$(dirname "$apt_log")"
    : >"$apt_log"
    say "installing Debian packages: $*"
    trap allow_services EXIT
    trap 'exit 130' INT TERM HUP
    forbid_services
    finish_interrupted_install
    alternatives=$(update-alternatives --get-selections)
    if apt update && apt install --no-install-recommends --no-remove "$@"; then
        disable_services "$@"
        restore_alternatives "$alternatives"
        rm "$apt_begun"
        return 0
    fi
    tail -n 5 "$apt_log" >&2
    return 1
)

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get --yes --quiet \
        --option DPkg::Lock::Timeout=300 "$@" >>"$apt_log" 2>&1 </dev/null
}

# After an interrupt dpkg refuses everything until it may finish. Only our own interrupted
# install is finished here; what somebody else left half done is theirs.
finish_interrupted_install() {
    if [[ -e $apt_begun ]]; then
        as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a >>"$apt_log" 2>&1 </dev/null || true
    fi
    : >"$apt_begun"
}

# Debian asks this script before any package starts a service; 101 means no. One that an
# interrupted run left behind is ours, and so is not kept as the machine's own.
forbid_services() {
    if [[ -e $policy ]] && ! grep -qF "$policy_mark" "$policy"; then
        as_root mv "$policy" "$policy.before-tidegate"
    fi
    printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
}

allow_services() {
    as_root rm -f "$policy"
    [[ ! -e $policy.before-tidegate ]] || as_root mv "$policy.before-tidegate" "$policy"
}

# Without this the new services would start at the next boot.
disable_services() {
    local package unit
    command -v systemctl >/dev/null || return 0
    for package in "$@"; do
        case $package in
        slurmctld | slurmd | slurmdbd | munge | prometheus*) set -- "$package.service" ;;
        mariadb-server) set -- mariadb.service mariadb.socket ;;
        *) continue ;;
        esac
        for unit in "$@"; do
            as_root systemctl disable "$unit" >>"$apt_log" 2>&1 || true
        done
    done
}

# A dependency may take over a command: gawk, which MariaDB wants, becomes `awk`. Puts back
# the choices in $1, an earlier answer of `update-alternatives --get-selections`.
restore_alternatives() {
    local name chosen
    while read -r name _ chosen; do
        if [[ $(readlink "/etc/alternatives/$name") != "$chosen" ]]; then
            as_root update-alternatives --set "$name" "$chosen" >>"$apt_log" 2>&1 || true
        fi
    done <<<"$1"
}
