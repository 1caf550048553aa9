# shellcheck shell=bash
# needs: shared pyxis
# only_with: CONTAINER_CACHE
# Images of containers for all users, in a folder in which only root of the head can write: nodes find
# in it what `tidegate-share-image` imported here, see tidegate-import.sh.

readonly IMAGES=$SHARED_DIR/containers COMMAND=/usr/local/sbin/tidegate-share-image
readonly SETTINGS=/etc/tidegate/container-cache

settings() {
    printf 'SHARED=%q\n' "$IMAGES"
}

# shellcheck disable=SC2016 # the command expands it
command_text() {
    printf '#!/bin/bash\nexec %q share "$@"\n' "$IMPORTER"
}

check() {
    [[ $(stat -c '%u %a' "$IMAGES" 2>/dev/null) == '0 755' ]] && has_file "$SETTINGS" settings &&
        cmp -s files/tidegate-import.sh "$IMPORTER" && has_file "$COMMAND" command_text
}

apply() {
    install -d -m 755 "$IMAGES" "${IMPORTER%/*}"
    settings | put_file "$SETTINGS" 644
    put_file "$IMPORTER" 755 <files/tidegate-import.sh
    command_text | put_file "$COMMAND" 755
}
