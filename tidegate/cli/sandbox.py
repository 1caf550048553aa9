"""`tidegate sandbox`: a whole cluster on this computer, for as long as its shell is open."""

from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.options import VARIABLE

EXAMPLES = (
    "Examples: tidegate sandbox; tidegate sandbox --cluster clusters/dev.yaml;"
    " tidegate sandbox --command 'sbatch --gres=gpu:t4:1 --wrap hostname; sleep 9; squeue';"
    " tidegate sandbox --cluster pcluster.yaml."
    " Exit codes: those of the shell or the command; 2: SLURM=real, and it cannot."
)


def sandbox(
    cluster: Annotated[
        Path | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="FILE",
            envvar=VARIABLE,
            exists=True,
            dir_okay=False,
            help="Its pools, partitions, limits and prices; also of a configuration of"
            " ParallelCluster; a small cluster when left out.",
        ),
    ] = None,
    hooks: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Scripts of the file's hooks, as BUCKET/KEY or by name; those beside the file when"
            " left out. What is not there, a stand-in runs.",
        ),
    ] = None,
    command: Annotated[
        str, typer.Option(metavar="LINE", help="Run this instead of asking for commands.")
    ] = "",
) -> None:
    """Run a cluster on this computer, to play with.

    AWS's part is played. Slurm and machines are real where they can be (root, on Linux), else
    simulated. Nothing of it is left at its end.
    """
    from tidegate.cli.local_cloud import become

    options = ["--cluster", str(cluster)] if cluster else []
    options += ["--hooks", str(hooks)] if hooks else []
    options += ["--command", command] if command else []
    become("local.sandbox", options, called="sandbox")
