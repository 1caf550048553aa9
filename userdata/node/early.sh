# shellcheck shell=bash
# needs:
# A node's boot runs whole at each start of the machine: after a reboot nothing is left of what stood in
# /run, the kernel and the GPUs, the owner rule among it. cloud-init runs user data once in the life of an
# instance, but lays it down again at each boot (its ShellScriptPartHandler is PER_ALWAYS); so the unit
# that starts baked nodes early runs it there, on every node from its first boot on. slurmd waits for the
# stages in any case (MAY_START).

readonly UNIT=tidegate-early.service UNITS=/etc/systemd/system SCRIPT=/opt/tidegate/early.sh
readonly WANTED=$UNITS/multi-user.target.wants/$UNIT

check() {
    cmp -s "files/$UNIT" "$UNITS/$UNIT" && cmp -s files/early.sh "$SCRIPT" && [[ -L $WANTED ]]
}

apply() {
    put_file "$SCRIPT" 755 <files/early.sh
    put_file "$UNITS/$UNIT" 644 <"files/$UNIT"
    install -d "${WANTED%/*}"
    ln -sf "../$UNIT" "$WANTED"
}
