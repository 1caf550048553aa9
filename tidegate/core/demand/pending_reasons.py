"""Slurm's pending reasons: which ones more nodes would end, and what the others mean.

Matched by prefix, because squeue prints long texts for some. The words are those of the
reasons in Slurm 22.05's library; what real daemons showed is in docs/real-slurm.md.
"""

# `None`, `Priority` and `SchedDefer` mean "not evaluated yet"; `NodeDown` follows a requeue, as
# `BeginTime` does: the agent cuts that one short for the jobs that we requeue.
NEEDS_CAPACITY = (
    "Nodes required for job are DOWN",
    "ReqNodeNotAvail",
    "Resources",
    "PartitionConfig",
    "Priority",
    "None",
    "NodeDown",
    "SchedDefer",
)

HELD_BECAUSE = {
    "DependencyNeverSatisfied": "the job that it depends on can never end as it asks",
    "Dependency": "it waits for another job",
    "BeginTime": "its begin time has not come",
    "JobHeldAdmin": "an administrator holds it",
    "JobHoldMaxRequeue": "Slurm holds it: it was requeued too often",
    "JobHeld": "it is held",
    "launch failed requeued held": "Slurm holds it: its launch failed",
    "job requeued in held state": "it was requeued and is held",
    "RequeueExit": "it was requeued because of its exit code and is held",
    "JobLaunchFailure": "its launch failed",
    "JobArrayTaskLimit": "as many tasks of its array run, or were requeued, as its %limit allows",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionTimeLimit": "it asks more time than its partition allows",
    "PartitionNodeLimit": "it asks more nodes than its partition allows",
    "Partition": "its partition does not take it",
    "Licenses": "it waits for licences",
    "ReservationDeleted": "its reservation was deleted",
    "RequiresReservation": "its partition takes jobs with a reservation only",
    "Assoc": "it is over a limit of its account or association",
    "AccountingPolicy": "an accounting policy holds it",
    "Account": "its account may not use the partition",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its QOS is not valid",
    "QOSNotAllowed": "its QOS may not use the partition",
    "QOSUsageThreshold": "its usage is above the threshold of its QOS",
    "QOSMin": "it asks less than its QOS demands",
    "QOS": "it is over a limit of its QOS",
    "MaxMemPerLimit": "it asks more memory per CPU or node than its partition allows",
    "Max": "it is over a limit that its QOS sets for one account",
    "BadConstraints": "its constraints can never be met",
    "BurstBuffer": "it waits for its burst buffer",
    "Block": "it waits for a block of its machine",
    "Cleaning": "its last run is still being cleaned up",
    "Prolog": "its prolog runs",
    "DeadLine": "it cannot end before its deadline",
    "FedJobLock": "another cluster of its federation may start it",
    "FrontEndDown": "no front end is up",
    "InactiveLimit": "Slurm's limit on inactive jobs ended it",
    "TimeLimit": "it ran into its time limit",
    "NonZeroExitCode": "its last run failed",
    "OutOfMemory": "its last run had too little memory",
    "SystemFailure": "Slurm had a failure",
}


def held_because(reason: str) -> str:
    """Why a job with this reason would not start even if nodes were up; "" when it would."""
    # Reservations of others keep it from the nodes that are there; its own, see `demand.where`.
    if not reason or reason == "Reservation" or reason.startswith(NEEDS_CAPACITY):
        return ""
    for prefix, sentence in HELD_BECAUSE.items():
        if reason.startswith(prefix):
            return sentence
    return f"Slurm says {reason}, which more nodes would not change"
