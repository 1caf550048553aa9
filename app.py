"""The CDK app: a stack per cluster file.

cdk synth                            every file in clusters/
cdk synth -c cluster=my/file.yaml    one file
cdk synth -c clusters='my/*.yaml'    other files

Exit code 1 and the faults of all files on stderr when one of them is wrong.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent


def main() -> int:
    # The CDK runs on node, and the machine's own may be too old: the virtual environment's
    # comes first. It is looked up when aws_cdk is imported.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # CloudFormation's own rules are half of a synthesis. The tests hold the templates against
    # cfn-lint and cdk-nag; CDK_VALIDATION=true has them here as well.
    os.environ.setdefault("CDK_VALIDATION", "false")
    from cdk.app import synthesize
    from tidegate.core.model.errors import BadConfig

    try:
        synthesize(ROOT, account=os.environ.get("CDK_DEFAULT_ACCOUNT"))
    except BadConfig as bad:
        print(bad, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
