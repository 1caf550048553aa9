#!/bin/bash
# Runs a node's user data as soon as there is a network: in a baked image at the first boot too, some
# ten seconds before cloud-init would, which comes to scripts last of all; at later boots on every node
# (see the stage early). Taken away from cloud-init: run a second time, it would start the timer again
# that ends a node which is not ready.
scripts=/var/lib/cloud/instance/scripts
for script in "$scripts"/*; do
    if [[ -f $script ]] && grep -q '^# Tidegate [a-z0-9-]*: node$' "$script"; then
        mv "$script" /run/tidegate-user-data && exec /bin/bash /run/tidegate-user-data
    fi
done
