# shellcheck shell=bash
# needs:
# wait_s: 120
# Nothing changes a node's packages behind our back: an upgrade of the driver's libraries or of the
# kernel breaks GPUs until the next boot, and apt's own timers hold its lock while we install. A head
# lives for months instead: it gets the system's security updates, all but Slurm, whose version is the
# cluster's, and its database. On neither does an update restart what would end a boot or jobs.

readonly UNITS='apt-daily.timer apt-daily-upgrade.timer apt-daily.service
    apt-daily-upgrade.service unattended-upgrades.service'
readonly FROZEN=('nvidia-*' 'libnvidia-*' 'linux-image-*' 'linux-headers-*' 'linux-modules-nvidia-*')
readonly UPGRADES=/etc/apt/apt.conf.d/90tidegate RESTARTS=/etc/needrestart/conf.d/tidegate.conf

# Packages of the driver and the kernel that an upgrade would still take. AL2023 upgrades nothing by
# itself, and nothing beyond the release of its image.
not_held() {
    ! command -v dpkg-query >/dev/null ||
        dpkg-query -W -f '${db:Status-Want} ${db:Status-Status} ${Package}\n' "${FROZEN[@]}" 2>/dev/null |
        sed -n 's/^install installed //p' || true # a pattern without a package is an error
}

# Sources: /etc/apt/apt.conf.d/50unattended-upgrades of Ubuntu 24.04, and needrestart's README.batch.
upgrades() {
    cat <<'EOF_APT'
APT::Periodic::Update-Package-Lists "1";
APT::Periodic::Unattended-Upgrade "1";
Unattended-Upgrade::Automatic-Reboot "false";
Unattended-Upgrade::Package-Blacklist { "slurm"; "libslurm"; "mariadb"; };
EOF_APT
}

restarts() {
    # shellcheck disable=SC2016 # Perl's
    echo '$nrconf{override_rc}{qr(^(tidegate|slurm|munge|mariadb))} = 0;'
}

check() {
    local unit link
    has_file "$RESTARTS" restarts || return
    for unit in $UNITS; do
        link=$(readlink "/etc/systemd/system/$unit")
        [[ $ROLE == head && $link != /dev/null || $ROLE != head && $link == /dev/null ]] || return
    done
    if [[ $ROLE == head ]]; then
        has_file "$UPGRADES" upgrades
    else
        [[ -z $(not_held) ]]
    fi
}

apply() {
    install -d "${RESTARTS%/*}" "${UPGRADES%/*}"
    restarts | put_file "$RESTARTS" 644
    if [[ $ROLE == head ]]; then
        upgrades | put_file "$UPGRADES" 644
        # shellcheck disable=SC2086
        systemctl unmask $UNITS
        return
    fi
    systemctl stop apt-daily.timer apt-daily-upgrade.timer || true
    # shellcheck disable=SC2086
    systemctl mask $UNITS
    not_held | xargs -r apt-mark hold
}
