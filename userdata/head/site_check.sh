# shellcheck shell=bash
# needs: agent
# The site's own checks of new templates and of idle nodes: what submits them, who may, and what they are.

readonly PROGRAM=/usr/local/sbin/tidegate-check CHECKS=/etc/slurm/tidegate-check.conf
readonly RIGHT=/etc/sudoers.d/tidegate-check

right() {
    printf 'Defaults!%s !requiretty\n%s ALL=(root) NOPASSWD: %s' "$PROGRAM" "$AGENT_USER" "$PROGRAM"
}

check() {
    if [[ ! -e files/check ]]; then
        [[ ! -e $RIGHT && ! -e $CHECKS ]]
        return
    fi
    has_file "$RIGHT" right && cmp -s files/check "$CHECKS" &&
        cmp -s files/tidegate-check.sh "$PROGRAM" &&
        has_script check && has_script idle && has_script pair
}

script_of() {
    echo "/etc/slurm/tidegate-$1.sbatch"
}

has_script() {
    [[ ! -e files/$1.sbatch ]] || cmp -s "files/$1.sbatch" "$(script_of "$1")"
}

apply() {
    local kind
    rm -f "$RIGHT" "$CHECKS" "$(script_of check)" "$(script_of idle)" "$(script_of pair)"
    [[ -e files/check ]] || return 0
    put_file "$PROGRAM" 755 <files/tidegate-check.sh
    for kind in check idle pair; do
        [[ ! -e files/$kind.sbatch ]] || put_file "$(script_of "$kind")" 644 <"files/$kind.sbatch"
    done
    put_file "$CHECKS" 644 <files/check
    # sudo reads no file that others than root may write, and none with a dot in its name.
    install -d -m 750 "${RIGHT%/*}"
    right | put_file "$RIGHT" 440
}
