# shellcheck shell=bash
# needs: packages pyxis
# Slurm's commands read the head's slurm.conf, which comes with the deployment: no daemon of Slurm's
# runs here that could fetch it.

readonly CONF=/etc/slurm/slurm.conf PLUGINS=/etc/slurm/plugstack.conf
readonly TOPOLOGY_CONF=/etc/slurm/topology.conf

# srun and sbatch know pyxis' options where the plugin is; a batch script needs none of them here.
has_plugins() {
    [[ $CONTAINERS != pyxis || -z $(pyxis) ]] || has_file "$PLUGINS" echo "optional $(pyxis)"
}

# slurm.conf names the plugin, which every command of Slurm then loads.
has_topology() {
    [[ ! -e files/topology.conf ]] || cmp -s files/topology.conf "$TOPOLOGY_CONF"
}

check() {
    cmp -s files/slurm.conf "$CONF" && has_plugins && has_topology
}

apply() {
    install -d -m 755 /etc/slurm
    has_topology || put_file "$TOPOLOGY_CONF" 644 <files/topology.conf
    put_file "$CONF" 644 <files/slurm.conf
    has_plugins || put_file "$PLUGINS" 644 <<<"optional $(pyxis)"
}
