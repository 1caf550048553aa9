#!/bin/bash
# What the EFA devices of the node have counted since their driver came, all of them together, as a file
# that node exporter reads: it has no collector for EFA, and a p5 has 32 devices. Names are the driver's;
# an older one counts fewer. Source: CloudWatch user guide, "Collect EFA metrics".
set -uo pipefail

readonly TO=$1 EVERY_S=30
DEVICES=${DEVICES:-/sys/class/infiniband}
readonly COUNTED=(tx_bytes retrans_timeout_events unresponsive_remote_events)

# Sums as text of whole numbers: awk's own form of a large one has an exponent and six digits.
metrics() {
    local name file
    for name in "${COUNTED[@]}"; do
        for file in "$DEVICES"/*/ports/*/hw_counters/"$name"; do
            [[ ! -r $file ]] || echo "$name $(cat "$file")"
        done
    done 2>/dev/null | awk '
        $2 ~ /^[0-9]+$/ { if (!($1 in sum)) order[++count] = $1; sum[$1] += $2 }
        END {
            for (i = 1; i <= count; i++) {
                name = "tidegate_efa_" order[i] "_total"
                printf "# TYPE %s counter\n%s %.0f\n", name, name, sum[order[i]]
            }
        }'
}

main() {
    while :; do
        metrics >"$TO.new" && mv "$TO.new" "$TO"
        sleep "$EVERY_S"
    done
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main
