# shellcheck shell=bash
# needs: packages identity
# wait_s: 300
# time_limit_s: 300
# The agent and the packages it needs, by the hash that the deployment knows, so that no registry
# is asked and an image needs none of it. Each version has a folder of its own; the old one is there
# until the new one runs. An image that was baked with this version brings the folder.

# shellcheck source=/dev/null
source files/agent_paths.sh

check() {
    [[ -z $AGENT_SHA256 ]] || { [[ -e $(agent_folder)/__main__.py ]] && agent_python >/dev/null; }
}

apply() {
    local archive=$RUN_DIR/agent.tgz folder python
    folder=$(agent_folder)
    python=$(agent_python) || refuse "the agent needs Python 3.12 or 3.13, the image has neither"
    if ! signed s3 -m 60 -o "$archive" "$(endpoint s3)/$AGENT"; then
        echo "$AGENT cannot be fetched"
        return 1
    fi
    # Not tried again: nothing was unpacked, and what is there is not what the deployment made.
    sha256sum --status -c <<<"$AGENT_SHA256  $archive" || refuse "$AGENT does not have its hash"
    rm -rf "$folder.new"
    mkdir -p "$folder.new"
    tar -xzf "$archive" -C "$folder.new"
    rm "$archive"
    # Its user may not write here, and would compile everything at each start.
    "$python" -m compileall -q "$folder.new" || true
    mv "$folder.new" "$folder"
}
