"""What people do by hand to single jobs and nodes while a world runs."""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.sim.chaos import Chaos
from tidegate.sim.draw import stream
from tidegate.sim.options import Happening

AGAIN_S = 20.0  # until somebody who found nothing to do, or no slurmctld, tries again


@dataclass(slots=True)
class People:
    """Each method is a happening that the world's options name."""

    chaos: Chaos

    def suspend(self, happening: Happening) -> None:
        """A running job makes room for a while (`scontrol suspend`)."""
        slurm, chance = self.chaos.world.slurm, stream(self.chaos.options.seed, "whose job")
        running = [job for job in slurm.table.active.values() if job.state == "RUNNING"]
        # Of a heterogeneous job Slurm suspends all components; one is enough for this world.
        running = [job for job in running if not job.het_job_id]
        if not running and not self.chaos.is_over:
            self._after(AGAIN_S, lambda: self.suspend(happening))
        elif running and slurm.is_up:
            job_id = chance.choice(running).job_id
            slurm.suspend(job_id)
            self._after(happening.for_s, lambda: self._while_up(slurm.resume, job_id))

    def _after(self, wait_s: float, happen: Callable[[], None]) -> None:
        self.chaos.world.at(self.chaos.world.clock.now_s() + wait_s, happen)

    def _while_up(self, do: Callable[[str], None], name: str) -> None:
        if self.chaos.world.slurm.is_up:
            do(name)
        else:
            self._after(AGAIN_S, lambda: self._while_up(do, name))
