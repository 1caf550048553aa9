# shellcheck shell=bash
# needs:
# wait_s: 120
# A node that powers off is paid until it is off, and what does not stop, as with a shared folder that
# does not answer, may keep systemd from that for minutes: it waits 90 s for each unmount and each process,
# for some again and again (its issues 6115 and 13871). So what begins with each shutdown ends the machine OFF_AFTER_S later at the
# latest, by the system call. A stopped node is started again, so its root disk alone is written out before, for 5 s at most:
# sync(2) would wait for the folder that does not answer, and so may a disk (syncfs(2)). systemd spares a process whose name
# begins with @ (systemd.io/ROOT_STORAGE_DAEMONS).
# Longer than the 90 s that systemd gives each process by itself (DefaultTimeoutStopSec): EC2's own shutdowns
# come this way too, after a reclaim's two minutes or with a block's end, and a job that runs to the end may
# save then. EC2 bills nothing of those (user guide, "Terminate your instance").

readonly UNIT=/etc/systemd/system/tidegate-power-off.service OFF_AFTER_S=100
readonly WANTED=/etc/systemd/system/shutdown.target.wants/${UNIT##*/}

unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: a shutdown that hangs ends all the same
DefaultDependencies=no
[Service]
ExecStart=@/usr/bin/python3 @tidegate-power-off -ISc "import ctypes, os, threading, time; time.sleep($OFF_AFTER_S); libc = ctypes.CDLL(None); disk = threading.Thread(target=lambda: libc.syncfs(os.open(os.sep, 0)), daemon=True); disk.start(); disk.join(5); libc.reboot(0x4321FEDC)"
EOF_UNIT
}

check() {
    has_file "$UNIT" unit && [[ -L $WANTED ]]
}

apply() {
    unit | put_file "$UNIT" 644
    install -d "${WANTED%/*}"
    ln -sf "$UNIT" "$WANTED"
    systemctl daemon-reload
}
