# shellcheck shell=bash
# needs: config people login munge file_systems
# time_limit_s: ON_LOGIN_CONFIGURED_S
# wait_s: 60
# The site's own scripts, when all else runs. One that ran stays so until it changes.

# shellcheck source=/dev/null
source files/hooks.sh

readonly HOOKS_DONE=/var/lib/tidegate/hooks

check() {
    all_ran on_login_configured "$HOOKS_DONE" <files/on_login_configured
}

apply() {
    run_hooks on_login_configured "$HOOKS_DONE" <files/on_login_configured
}
