"""Daily backups of what cannot be made again: the shared files and the head's data volume.

The ledger has its point-in-time recovery, and the Munge key its versions.
"""

from collections.abc import Sequence

from aws_cdk import Aws, Fn
from aws_cdk import aws_backup as backup
from constructs import Construct

from cdk import statements
from cdk.storage import keep_once_made

# Three in the morning, when few write; AWS Backup starts within the hour behind it.
DAILY = "cron(0 3 * * ? *)"

# AWS's own, which names what a backup of each service needs.
MANAGED_POLICY = "service-role/AWSBackupServiceRolePolicyForBackup"


class Backups(Construct):
    """A vault that outlives the stack, and a plan that fills it."""

    def __init__(
        self, scope: Construct, id: str, *, cluster: str, arns: Sequence[str], keep_days: int
    ) -> None:
        super().__init__(scope, id)
        vault = backup.CfnBackupVault(
            self, "Vault", backup_vault_name=f"tidegate-{cluster}-{_stack_s_own()}"
        )
        keep_once_made(vault)
        rule = backup.CfnBackupPlan.BackupRuleResourceTypeProperty(
            rule_name="daily",
            target_backup_vault=vault.ref,
            schedule_expression=DAILY,
            lifecycle=backup.CfnBackupPlan.LifecycleResourceTypeProperty(
                delete_after_days=keep_days
            ),
        )
        plan = backup.CfnBackupPlan(
            self,
            "Plan",
            backup_plan=backup.CfnBackupPlan.BackupPlanResourceTypeProperty(
                backup_plan_name=f"tidegate-{cluster}", backup_plan_rule=[rule]
            ),
        )
        role = statements.role(
            self, "Role", service="backup", statements=(), managed=[MANAGED_POLICY]
        )
        backup.CfnBackupSelection(
            self,
            "Selection",
            backup_plan_id=plan.ref,
            backup_selection=backup.CfnBackupSelection.BackupSelectionResourceTypeProperty(
                selection_name="files-and-head-data",
                iam_role_arn=role.role_arn,
                resources=list(arns),
            ),
        )


def _stack_s_own() -> str:
    """Eight characters that no later stack of this name has: the kept vault has the name still."""
    stack_uuid = Fn.select(2, Fn.split("/", Aws.STACK_ID))
    return Fn.select(0, Fn.split("-", stack_uuid))
