"""slurmctld, as the head's agent needs it."""

from collections.abc import Sequence
from typing import Protocol

from tidegate.core.model.slurm import Reading


class Slurm(Protocol):
    """slurmctld, as the head's agent drives it. Every method may raise SlurmUnavailable."""

    def read(self) -> Reading:
        """Queue, dynamic nodes and accounting limits. FUTURE placeholders are left out."""
        ...

    def drain(self, names: Sequence[str], reason: str) -> None:
        """Start no new job on these nodes; unknown names are no error.

        From then on a reading shows that the reason is ours (`Node.set_by`), as with `down`.
        """
        ...

    def undrain(self, names: Sequence[str]) -> None:
        """Let jobs start again; all names in one command, so that a gang starts as one."""
        ...

    def weigh(self, names: Sequence[str], weight: int) -> None:
        """Let Slurm fill nodes of a lower weight before these; unknown names are no error."""
        ...

    def down(self, names: Sequence[str], reason: str) -> None:
        """Set nodes DOWN: what runs there is requeued at once, or ended if it may not be.

        Unknown names and the reason: as with `drain`.
        """
        ...

    def reboot(self, names: Sequence[str]) -> None:
        """Drain nodes, and reboot each once nothing runs there; then they take jobs again.

        They keep the reason that they have. One that does not come back in time goes DOWN.
        Unknown names are no error.
        """
        ...

    def delete(self, names: Sequence[str]) -> dict[str, str]:
        """Delete idle drained nodes; name -> error text where Slurm refused.

        Nodes that are gone already are no error.
        """
        ...

    def requeue(self, job_ids: Sequence[str]) -> dict[str, str]:
        """End and requeue running jobs, to start two minutes later; job id -> error text."""
        ...

    def hold(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Have jobs wait, also those that run, until they are released; job id -> error text."""
        ...

    def start(self, job_ids: Sequence[str]) -> None:
        """Cancel the delay of requeued jobs (StartTime=now); a running job is left alone.

        Only once the job waits, and in a later second than that of its old run's end: earlier it
        has no effect, or Slurm fails the job.
        """
        ...

    def signal(self, job_ids: Sequence[str], signal: str) -> dict[str, str]:
        """Send a signal to batch shell and steps; returns job id -> error text."""
        ...

    def scancel(self, job_ids: Sequence[str]) -> dict[str, str]:
        """End jobs, all components with the first one; job id -> error text, none if over."""
        ...

    def tell(self, job_id: str, text: str) -> str:
        """Add a line to a running job's output; "": Slurm took it, else its words why not."""
        ...

    def comment(self, job_id: str, text: str) -> None:
        """Set the job's AdminComment; also makes slurmctld run a scheduling pass."""
        ...

    def constrain(self, job_ids: Sequence[str], constraint: str) -> dict[str, str]:
        """Give pending jobs this constraint instead of theirs; returns job id -> error text."""
        ...

    def check(self, name: str, nodes: Sequence[str]) -> str:
        """Submit the site's check on these nodes, once for each name; "" or why it is not taken."""
        ...

    def poke(self, names: Sequence[str]) -> None:
        """Make slurmctld run a scheduling pass: registration alone does not (up to 30 s)."""
        ...
