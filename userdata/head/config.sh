# shellcheck shell=bash
# Slurm's configuration, once: what an administrator changed stays when the head is stopped and
# started. Nodes get theirs from slurmctld (configless), all but the line of gres.conf that points
# at a file of their own.

stage_config() {
    [[ ! -e /etc/tidegate/configured ]] || return 0
    install -d -m 755 /etc/slurm
    install -d -o slurm -g slurm -m 700 "$STATE_DIR"
    install -d -o slurm -g slurm -m 755 /var/log/slurm
    file_SLURM_CONF_GZ | base64 -d | gunzip >/etc/slurm/slurm.conf
    file_CGROUP_CONF >/etc/slurm/cgroup.conf
    echo 'Include /etc/slurm/gres.node.conf' >/etc/slurm/gres.conf
    # The head has no GPU, but slurmctld waits up to 60 s for a file that is not there.
    : >/etc/slurm/gres.node.conf
    install -d -m 755 /etc/tidegate
    touch /etc/tidegate/configured
}
