# shellcheck shell=bash
# needs: threads gpu fabric mig mps efa scratch containers shared lustre file_systems owner_rule munge
# time_limit_s: 300
# The gate before Slurm. It fails closed: a sick node costs more jobs than a missing one, and a
# check that cannot be made counts as failed. Then the checks that go on, by Slurm's
# HealthCheckProgram and the epilog: see the stage health_watch.

# shellcheck source=/dev/null
source files/checks.sh

# One that another try could not mend ends the node at once.
gate() {
    local check
    for check in $(checks_of boot); do
        "check_$check" || [[ ${ACTIONS[$check]} == tell ]] || { [[ $check != diag ]] && retest "$check"; } ||
            exit "$WRONG_CONFIGURATION"
    done
}

apply() {
    note_disks
    gate
    install -d /etc/tidegate/epilog.d
    put_file /etc/tidegate/health-check 755 <<<$'#!/bin/bash\nexec '"$PWD/files/health-check.sh periodic"
    put_file /etc/tidegate/epilog.d/50-health.sh 755 \
        <<<$'#!/bin/bash\nexec '"$PWD/files/health-check.sh epilog"
}
