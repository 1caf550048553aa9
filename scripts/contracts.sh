#!/usr/bin/env bash
# The contract tests of Slurm on the simulation, on this machine's Slurm, on Debian 13's 24.11 and on
# sid's, 26.05 when this was written; an upgrade from release to release; and nodes of each release with
# a head of each other one.
#
#   scripts/contracts.sh         the trees are made once, in /var/tmp (root; 1-3 minutes each)
#   TREE=DIR SID=DIR scripts/contracts.sh
#   SOURCES='DIR DIR' scripts/contracts.sh   and on unpacked releases of SchedMD's source, oldest first,
#                                            between 24.11 and sid's: each is built once (15 CPU minutes)
#
# With a tree of Ubuntu 24.04 the contracts are held against 23.11 too, and the upgrade begins at 22.05:
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
readonly jammy=${JAMMY:-/var/tmp/tidegate-jammy} sid=${SID:-/var/tmp/tidegate-sid}

readonly of_slurm=(tests/contracts/test_{slurm,together,restart,cores,metrics,site_check,idle_jobs,topology,shares}_contract.py)
# Drains, holds and interruptions. The partitions' contract needs accounting, see docs/limits.md.
readonly of_nodes=(
    tests/contracts/test_{deadline,drains,held,move,steering,where}_contract.py
    tests/contracts/test_{foreign_nodes,probe_job}.py
    tests/e2e/test_{spot_watch,letting_go,agent_real}.py
)

scripts/setup.sh
command -v debootstrap >/dev/null || apt-get -q -y install debootstrap
docs/experiments/debian_tree.sh trixie "$tree"
docs/experiments/debian_tree.sh sid "$sid"
trees=("$tree")
for source in ${SOURCES:-}; do
    built=/var/tmp/tidegate-slurm-$(awk '$1 == "Version:" {print $2}' "$source/META")
    docs/experiments/slurm_tree.sh "$source" "$built"
    trees+=("$built")
done
trees+=("$sid")
export TIDEGATE_REQUIRE_REAL=1
upgrade="${trees[*]}"
if [[ -x $noble/usr/sbin/slurmctld ]]; then
    upgrade="/ $noble $upgrade" trees+=("$noble")
fi
.venv/bin/pytest -q "${of_slurm[@]}"
TIDEGATE_SLURM_ROOT=$sid .venv/bin/pytest -q "${of_nodes[@]}" -k "not simulated"
for each in "${trees[@]}"; do
    TIDEGATE_SLURM_ROOT=$each .venv/bin/pytest -q "${of_slurm[@]}" -k "not simulated"
done
TIDEGATE_UPGRADE_TREES=$upgrade .venv/bin/pytest -q tests/contracts/test_upgrade.py
TIDEGATE_RELEASE_TREES="/ ${trees[*]}" .venv/bin/pytest -q tests/contracts/test_releases.py
if [[ -x $jammy/usr/bin/curl ]]; then
    TIDEGATE_JAMMY_TREE=$jammy .venv/bin/pytest -q tests/contracts/test_ubuntu_22.py
fi
