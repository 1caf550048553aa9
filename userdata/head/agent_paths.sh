# shellcheck shell=bash
# Where the agent's version of this deployment lies, and which Python runs it.

readonly AGENT_HOME=/opt/tidegate/agent

agent_folder() {
    echo "$AGENT_HOME/${AGENT_SHA256:0:16}"
}

# The archive has compiled packages for these two.
agent_python() {
    local name path
    for name in python3.13 python3.12 python3; do
        path=$(command -v "$name") || continue
        if "$path" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 12), (3, 13)))'; then
            echo "$path"
            return 0
        fi
    done
    return 1
}
