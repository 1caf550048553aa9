# shellcheck shell=bash
# needs:
# Nothing changes the image's packages behind our back: an upgrade of the driver's libraries or of
# the kernel breaks GPUs until the next boot, and apt's own timers hold its lock while we install.

readonly UNITS='apt-daily.timer apt-daily-upgrade.timer apt-daily.service
    apt-daily-upgrade.service unattended-upgrades.service'

check() {
    local unit
    for unit in $UNITS; do
        [[ $(readlink "/etc/systemd/system/$unit") == /dev/null ]] || return
    done
}

apply() {
    # shellcheck disable=SC2086
    systemctl mask $UNITS
}
