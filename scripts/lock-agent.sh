#!/bin/bash
# Locks the packages of the head's agent, with the versions of uv.lock. Apart from that, since uv.lock
# holds the wheels for this project's own Python only, and a head has its distribution's.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."

.venv/bin/uv export --quiet --frozen --only-group agent --no-emit-project --no-hashes --no-header \
    --no-annotate |
    .venv/bin/uv pip compile --quiet --no-deps --universal --generate-hashes --python-version 3.12 \
        --no-header --no-annotate --custom-compile-command scripts/lock-agent.sh \
        --output-file cdk/agent_requirements.txt -
