# shellcheck shell=bash
# needs: identity
# time_limit_s: 60
# What the other stages call. Images bring it all; which programs are missing is said here, once.

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
    refuse "the image lacks $(missing | paste -sd' ')"
}
