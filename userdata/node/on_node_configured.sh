# shellcheck shell=bash
# needs: health users task_env
# only_with: ON_NODE_CONFIGURED
# time_limit_s: ON_NODE_CONFIGURED_S
# wait_s: 60
# The site's own scripts, on a node that is ready and has not joined.

# shellcheck source=/dev/null
source files/hooks.sh

check() {
    all_ran on_node_configured "$RUN_DIR/hooks/done" <<<"$ON_NODE_CONFIGURED"
}

apply() {
    run_hooks on_node_configured "$RUN_DIR/hooks/done" <<<"$ON_NODE_CONFIGURED"
}
