# shellcheck shell=bash
# needs: packages
# Slurm's commands read the head's slurm.conf, which comes with the deployment: no daemon of Slurm's
# runs here that could fetch it.

readonly CONF=/etc/slurm/slurm.conf PLUGINS=/etc/slurm/plugstack.conf

# srun and sbatch know pyxis' options where the plugin is; a batch script needs none of them here.
has_plugins() {
    [[ $CONTAINERS != pyxis || -z $(pyxis) ]] || has_file "$PLUGINS" "optional $(pyxis)"
}

check() {
    cmp -s files/slurm.conf "$CONF" && has_plugins
}

apply() {
    install -d -m 755 /etc/slurm
    put_file "$CONF" 644 <files/slurm.conf
    has_plugins || put_file "$PLUGINS" 644 <<<"optional $(pyxis)"
}
