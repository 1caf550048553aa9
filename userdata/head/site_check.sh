# shellcheck shell=bash
# needs: agent
# The site's own check of new templates: what submits it, who may, and what it is.

readonly PROGRAM=/usr/local/sbin/tidegate-check CHECKS=/etc/slurm/tidegate-check.conf
readonly SCRIPT=/etc/slurm/tidegate-check.sbatch RIGHT=/etc/sudoers.d/tidegate-check

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
        { [[ ! -e files/check.sbatch ]] || cmp -s files/check.sbatch "$SCRIPT"; }
}

apply() {
    rm -f "$RIGHT" "$CHECKS" "$SCRIPT"
    [[ -e files/check ]] || return 0
    put_file "$PROGRAM" 755 <files/tidegate-check.sh
    [[ ! -e files/check.sbatch ]] || put_file "$SCRIPT" 644 <files/check.sbatch
    put_file "$CHECKS" 644 <files/check
    # sudo reads no file that others than root may write, and none with a dot in its name.
    install -d -m 750 "${RIGHT%/*}"
    right | put_file "$RIGHT" 440
}
