#!/usr/bin/env bash
# The contract tests of Slurm on the simulation, on this machine's Slurm and on Debian 13's 24.11.
#
#   scripts/contracts.sh         the tree of Debian 13 is made once, in /var/tmp (root; 1-3 minutes)
#   TREE=DIR scripts/contracts.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly tree=${TREE:-/var/tmp/tidegate-trixie}

scripts/setup.sh
command -v debootstrap >/dev/null || apt-get -q -y install debootstrap
docs/experiments/debian13_tree.sh "$tree"
export TIDEGATE_REQUIRE_REAL=1
.venv/bin/pytest -q tests/contracts/test_slurm_contract.py
TIDEGATE_SLURM_ROOT=$tree .venv/bin/pytest -q tests/contracts/test_slurm_contract.py -k real
