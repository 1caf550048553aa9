# shellcheck shell=bash
# needs: threads gpu fabric mig mps efa scratch containers shared lustre file_systems owner_rule munge
# time_limit_s: 300
# The gate before Slurm. It fails closed: a sick node costs more jobs than a missing one, and a
# check that cannot be made counts as failed. Then the checks that go on, by Slurm's
# HealthCheckProgram and the epilog: see the stage health_watch.

# shellcheck source=/dev/null
source files/checks.sh

apply() {
    local check
    note_disks
    for check in $(checks_of_gpus pci gpus facts driver ecc rows throttle fabric mig) \
        check_kernel check_neurons check_efa check_shared check_disk check_owner_rule check_files_rule check_clock; do
        # One that another try could not mend ends the node at once.
        "$check" || exit "$WRONG_CONFIGURATION"
    done
    install -d /etc/tidegate/epilog.d
    put_file /etc/tidegate/health-check 755 <<<$'#!/bin/bash\nexec '"$PWD/files/health-check.sh periodic"
    put_file /etc/tidegate/epilog.d/50-health.sh 755 \
        <<<$'#!/bin/bash\nexec '"$PWD/files/health-check.sh epilog"
}
