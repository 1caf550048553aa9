# shellcheck shell=bash
# needs: identity
# Slurm's configuration, once: what an administrator changed stays when the head is stopped and
# started. Nodes get theirs from slurmctld (configless), all but the line of gres.conf that points
# at a file of their own.

check() {
    [[ -e /etc/tidegate/configured ]]
}

apply() {
    install -d -m 755 /etc/slurm
    install -d -o slurm -g slurm -m 700 "$STATE_DIR"
    install -d -o slurm -g slurm -m 755 /var/log/slurm
    install -m 644 files/slurm.conf files/cgroup.conf /etc/slurm
    echo 'Include /etc/slurm/gres.node.conf' >/etc/slurm/gres.conf
    # The head has no GPU, but slurmctld waits up to 60 s for a file that is not there.
    : >/etc/slurm/gres.node.conf
    touch /etc/tidegate/configured
}
