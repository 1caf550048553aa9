#!/usr/bin/env bash
# Head and node as virtual machines (QEMU, without the kernel's help), and the probes of bench/vm.
#
#   scripts/vm.sh         the image is made once, in /var/tmp/tidegate-vm (root; 1-4 minutes)
#   scripts/vm.sh WORD    the probes whose names hold the word
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
# shellcheck source=scripts/debian.sh
source scripts/debian.sh
say() { printf 'vm: %s\n' "$*"; }
mapfile -t missing < <(missing_packages qemu-system-x86 qemu-utils mmdebstrap)
if ((${#missing[@]})) && ! { can_be_root && install_packages "${missing[@]}"; }; then
    say "needs Debian's ${missing[*]} and root: apt-get install ${missing[*]}" >&2
    exit 1
fi
exec .venv/bin/python -m bench.vm "$@"
