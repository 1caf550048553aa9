"""Rules about the roles that jobs act as on AWS."""

from collections.abc import Iterator

from tidegate.wire.deployment import Nat
from tidegate.wire.parts import Parts
from tidegate.wire.problems import Problem


def _way_to_sts(parts: Parts) -> Iterator[Problem]:
    """A node asks STS for what its jobs act as."""
    has_role = parts.job_role_keys or any(pool.job_role for pool in parts.pools.values())
    network = parts.network
    if not has_role or network is None or network.vpc or network.nat is not Nat.NONE:
        return
    if network.endpoints and "sts" not in network.endpoints:
        yield Problem(
            ("network", "endpoints"), "without NAT also sts, by which job_role is assumed"
        )


def _accounts(parts: Parts) -> Iterator[Problem]:
    """Unless slurmctld refuses others' accounts, sbatch --account is all that a role takes."""
    slurm = parts.slurm
    if BY_ACCOUNT not in parts.job_role_keys or slurm is None or slurm.has_own_accounts_only:
        return
    yield Problem(
        (BY_ACCOUNT,),
        "needs a Slurm that lets nobody use an account of others: set slurm.accounting: true, and"
        " AccountingStorageEnforce: associations in slurm.settings",
    )


BY_ACCOUNT = "job_role_by_account"
JOB_ROLE_RULES = (_way_to_sts, _accounts)
