# shellcheck shell=bash
# needs:
# wait_s: 120
# Nothing changes the image's packages behind our back: an upgrade of the driver's libraries or of
# the kernel breaks GPUs until the next boot, and apt's own timers hold its lock while we install.

readonly UNITS='apt-daily.timer apt-daily-upgrade.timer apt-daily.service
    apt-daily-upgrade.service unattended-upgrades.service'
readonly FROZEN=('nvidia-*' 'libnvidia-*' 'linux-image-*' 'linux-headers-*' 'linux-modules-nvidia-*')

# Packages of the driver and the kernel that an upgrade would still take. AL2023 upgrades nothing by
# itself, and nothing beyond the release of its image.
not_held() {
    ! command -v dpkg-query >/dev/null ||
        dpkg-query -W -f '${db:Status-Want} ${db:Status-Status} ${Package}\n' "${FROZEN[@]}" 2>/dev/null |
        sed -n 's/^install installed //p' || true # a pattern without a package is an error
}

check() {
    local unit
    for unit in $UNITS; do
        [[ $(readlink "/etc/systemd/system/$unit") == /dev/null ]] || return
    done
    [[ -z $(not_held) ]]
}

apply() {
    # shellcheck disable=SC2086
    systemctl mask $UNITS
    not_held | xargs -r apt-mark hold
}
