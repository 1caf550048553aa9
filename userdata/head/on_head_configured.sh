# shellcheck shell=bash
# needs: agent login homes export file_systems
# time_limit_s: ON_HEAD_CONFIGURED_S
# wait_s: 60
# The site's own scripts, when all else of the head runs. One that ran stays so until it changes.

# shellcheck source=/dev/null
source files/hooks.sh

readonly HOOKS_DONE=/var/lib/tidegate/hooks

check() {
    all_ran on_head_configured "$HOOKS_DONE" <files/on_head_configured
}

apply() {
    run_hooks on_head_configured "$HOOKS_DONE" <files/on_head_configured
}
