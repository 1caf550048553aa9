#!/usr/bin/env bash
# The contract tests of Slurm on the simulation, on this machine's Slurm and on Debian 13's 24.11.
#
#   scripts/contracts.sh         the tree of Debian 13 is made once, in /var/tmp (root; 1-3 minutes)
#   TREE=DIR scripts/contracts.sh
#
# With a tree of Ubuntu 24.04 the contracts are held against 23.11 too, and an upgrade over all three
# is rehearsed:
#   debootstrap --variant=minbase --components=main,universe \
#       --include=slurmctld,slurmd,slurm-client,munge,iproute2,procps noble /var/tmp/tidegate-noble \
#       http://archive.ubuntu.com/ubuntu /usr/share/debootstrap/scripts/gutsy
# With one of Ubuntu 22.04, its curl, Python and apt run what nodes of that system run at their boot:
#   debootstrap --variant=minbase --components=main,universe \
#       --include=curl,ca-certificates,python3 jammy /var/tmp/tidegate-jammy \
#       http://archive.ubuntu.com/ubuntu /usr/share/debootstrap/scripts/gutsy
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly tree=${TREE:-/var/tmp/tidegate-trixie} noble=${NOBLE:-/var/tmp/tidegate-noble}
readonly jammy=${JAMMY:-/var/tmp/tidegate-jammy}

readonly of_slurm=(tests/contracts/test_{slurm,together,restart,cores}_contract.py)

scripts/setup.sh
command -v debootstrap >/dev/null || apt-get -q -y install debootstrap
docs/experiments/debian13_tree.sh "$tree"
export TIDEGATE_REQUIRE_REAL=1
.venv/bin/pytest -q "${of_slurm[@]}"
TIDEGATE_SLURM_ROOT=$tree .venv/bin/pytest -q "${of_slurm[@]}" -k "not simulated"
if [[ -x $jammy/usr/bin/curl ]]; then
    TIDEGATE_JAMMY_TREE=$jammy .venv/bin/pytest -q tests/contracts/test_ubuntu_22.py
fi
[[ -x $noble/usr/sbin/slurmctld ]] || exit 0
TIDEGATE_SLURM_ROOT=$noble .venv/bin/pytest -q "${of_slurm[@]}" -k "not simulated"
TIDEGATE_UPGRADE_TREES="$noble $tree" .venv/bin/pytest -q tests/contracts/test_upgrade.py
