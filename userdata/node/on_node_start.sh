# shellcheck shell=bash
# needs: identity shape packages owner_rule
# only_with: ON_NODE_START
# time_limit_s: ON_NODE_START_S
# wait_s: 60
# The site's own scripts, before mounts, GPUs and Slurm.

# shellcheck source=/dev/null
source files/hooks.sh

check() {
    all_ran on_node_start "$RUN_DIR/hooks/done" <<<"$ON_NODE_START"
}

apply() {
    run_hooks on_node_start "$RUN_DIR/hooks/done" <<<"$ON_NODE_START"
}
