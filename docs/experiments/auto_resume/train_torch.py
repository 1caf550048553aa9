#!/usr/bin/env python3
"""A training with PyTorch that goes on from its checkpoint: `TRAIN=train_torch.py sbatch ...`.

One process per node, by srun. They learn one small model together, by DistributedDataParallel over
gloo, which needs no GPU. The first one keeps model, optimizer and step after each step, and with it
writes the step into the heartbeat, as it does when it goes on. A real one does the same less often,
with `nccl` and its own data.
"""

import argparse
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

# For a rank that is gone nobody waits longer: the step ends, and the script with it.
PATIENCE = timedelta(seconds=60)


def join() -> int:
    """The rank of this process among those of the job's step, which has met the others."""
    # The batch script's srun runs on the job's first node, where rank 0 is.
    os.environ["MASTER_ADDR"] = os.environ["SLURM_LAUNCH_NODE_IPADDR"]
    os.environ["MASTER_PORT"] = str(20_000 + int(os.environ["SLURM_JOB_ID"]) % 10_000)
    rank, ranks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    distributed.init_process_group("gloo", rank=rank, world_size=ranks, timeout=PATIENCE)
    return rank


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--heartbeat", type=Path, required=True, help="says the step")
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--step-seconds", type=float, default=1.0, help="a step takes no less")
    given = parser.parse_args()
    rank = join()
    torch.manual_seed(7)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    done, loss = 0, torch.tensor(float("nan"))
    if given.checkpoint.exists():
        kept = torch.load(given.checkpoint, map_location="cpu")
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        done, loss = kept["step"], kept["loss"]
    nodes, restarts = os.environ.get("SLURM_JOB_NODELIST"), os.environ.get("SLURM_RESTART_COUNT", 0)
    if rank == 0:
        print(f"run {restarts} on {nodes}: goes on at step {done}, loss {loss:.4f}", flush=True)
        given.heartbeat.write_text(f"step {done}\n")
    for step in range(done + 1, given.steps + 1):
        time.sleep(given.step_seconds)
        inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(1000 * step + rank))
        loss = nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()  # averages the gradients of all ranks
        optimizer.step()
        if rank == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            written = given.checkpoint.with_suffix(".new")
            torch.save({**state, "step": step, "loss": loss.detach()}, written)
            written.rename(given.checkpoint)  # whole or not at all
            given.heartbeat.write_text(f"step {step}\n")


if __name__ == "__main__":
    main()
