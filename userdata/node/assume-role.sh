#!/bin/bash
# usage: assume-role.sh BODY
# Sends a call to STS with the node's own credentials, and prints the answer, also one that refuses.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/.." || exit 1
# shellcheck source=/dev/null
source ./lib.sh

signed sts -m 15 -d "$1" "$(endpoint sts)/"
