"""GPUs of a simulated node that Slurm gives away whole or in shards (or mps)."""

from dataclasses import dataclass, field

from tidegate.core.model.slurm import Shape

WHOLE = -1


@dataclass(slots=True)
class SharedGpus:
    """What each job has of which GPU. `free`: the shards left of each, WHOLE where a job has all of
    it as a GPU. `tells_each`: Slurm tells how many are in use of each, as from 23.11 on.

    A job has its shards of the first GPU that has so many, even where a later one is in use already
    and would do; whole GPUs are the first of which no shard is in use.
    Source: `_pick_specific_topo` of 22.05, `_pick_shared_gres_topo` of 26.05, without
    LL_SHARED_GRES; tests/contracts/test_shares_contract.py tries it.
    """

    gres: str
    per_gpu: int
    gpus: int
    tells_each: bool = False
    free: list[int] = field(init=False)
    _of: dict[str, list[tuple[int, int]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.free = [self.per_gpu] * self.gpus

    @property
    def whole(self) -> int:
        """GPUs that jobs have whole."""
        return self.free.count(WHOLE)

    @property
    def used(self) -> tuple[int, ...]:
        """How many shards are in use of each GPU of which any is."""
        return tuple(self.per_gpu - free for free in self.free if WHOLE < free < self.per_gpu)

    def has_room(self, shape: Shape) -> bool:
        """A job that wants the node for itself needs all shards of it, and so one GPU alone."""
        if shape.gres == self.gres:
            is_one = self.gpus == 1 or not shape.is_exclusive
            return is_one and max(self.free) >= shape.gpus
        return self.free.count(self.per_gpu) >= shape.gpus

    def give(self, job_id: str, shape: Shape) -> None:
        """One that has the node for itself shows whole GPUs before 23.11.4, and then all shards."""
        is_whole = shape.is_exclusive and not self.tells_each
        if shape.gres == self.gres and shape.gpus and not is_whole:
            gpu = next(n for n, free in enumerate(self.free) if free >= shape.gpus)
            shards = self.per_gpu if shape.is_exclusive else shape.gpus
            self.free[gpu] -= shards
            self._of[job_id] = [(gpu, shards)]
            return
        wanted = self.gpus if shape.is_exclusive else shape.gpus
        taken = [n for n, free in enumerate(self.free) if free == self.per_gpu][:wanted]
        self._of[job_id] = [(n, WHOLE) for n in taken]
        for n in taken:
            self.free[n] = WHOLE

    def take_back(self, job_id: str) -> None:
        for gpu, shards in self._of.pop(job_id, ()):
            self.free[gpu] = self.per_gpu if shards == WHOLE else self.free[gpu] + shards
