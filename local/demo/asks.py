"""What the demo's two users submit: as sbatch scripts, and as the simulator takes them."""

from dataclasses import dataclass, replace

from tidegate.core.model.slurm import Shape
from tidegate.sim.slurm_parts import Submit

CHECKPOINT_COMMENT = "tidegate:ckpt=USR1@3"

# Every script ends by writing what it saw, so that the story can check it.
REPORT = 'echo "$(hostname) $(id -un) gpus=$CUDA_VISIBLE_DEVICES" '
ONE_GPU = f'#!/bin/bash\nsleep "$1"\n{REPORT}> "$HOME/single-$SLURM_JOB_ID.out"\n'
ARRAY = (
    f'#!/bin/bash\nsleep 3\n{REPORT}> "$HOME/array-$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID.out"\n'
)
GANG = """#!/bin/bash
export FIRST=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
export PORT=$((20000 + SLURM_JOB_ID))
srun --ntasks-per-node=1 python3 "$HOME/rank.py" > "$HOME/gang-$SLURM_JOB_ID.out"
"""
RANK = '''\
"""One rank: rank 0 listens, all others connect to it by its host's name."""
import os, socket, time

size, rank = int(os.environ["SLURM_NTASKS"]), int(os.environ["SLURM_PROCID"])
first, port = os.environ["FIRST"], int(os.environ["PORT"])
gpus = os.environ["CUDA_VISIBLE_DEVICES"]
if rank == 0:
    heard = []
    with socket.create_server(("", port)) as server:
        server.settimeout(60)
        while len(heard) < size - 1:
            peer, _ = server.accept()
            with peer:
                heard.append(peer.recv(200).decode())
    print(f"{socket.gethostname()} heard {' '.join(sorted(heard))} gpus={gpus}", flush=True)
else:
    until = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection((first, port), timeout=5) as peer:
                peer.sendall(socket.gethostname().encode())
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
'''
CHECKPOINTED = f"""#!/bin/bash
save() {{ echo "saved on $(hostname)" >> "$HOME/checkpoint"; }}
trap save USR1
touch "$HOME/listening"
if [ -s "$HOME/checkpoint" ]; then
    sleep 2
    {REPORT}> "$HOME/resumed.out"
    exit 0
fi
for _ in $(seq 600); do sleep 0.2; done
"""


@dataclass(frozen=True, slots=True)
class Ask:
    """One sbatch. `argv`: its options; `script` and `args`: the batch script and its arguments."""

    name: str
    argv: tuple[str, ...]
    script: str
    simulated: Submit
    args: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()

    @property
    def user(self) -> str:
        return self.simulated.user


def _single(user: str, number: int, seconds: int) -> Ask:
    return Ask(
        f"single-{number}",
        ("--gres=gpu:t4:1", "--mem=2000"),
        ONE_GPU,
        Submit(user, Shape(1, "t4", 1, 2000), float(seconds)),
        args=(str(seconds),),
    )


OVERNIGHT = _single("grace", 4, 2)
# Where time is simulated all of it passes until the evening, and the job must still run then.
LATE = replace(
    _single("ada", 3, 8), simulated=Submit("ada", Shape(1, "t4", 1, 2000), duration_s=290.0)
)
SINGLES = (_single("ada", 1, 4), _single("grace", 2, 4))
ARRAY_OF_FOUR = Ask(
    "array",
    ("--gres=gpu:t4:1", "--mem=2000", "--array=0-3%2"),
    ARRAY,
    Submit("grace", Shape(1, "t4", 1, 2000), 3.0, array=4, throttle=2),
)
GANG_OF_THREE = Ask(
    "gang",
    ("-N3", "--ntasks-per-node=1", "--gres=gpu:a10g:4", "--mem=4000"),
    GANG,
    Submit("ada", Shape(4, "a10g", 1, 4000), 4.0, nodes=3),
    files=(("rank.py", RANK),),
)
CHECKPOINTED_JOB = Ask(
    "checkpointed",
    ("--gres=gpu:t4:4", "--mem=2000", f"--comment={CHECKPOINT_COMMENT}"),
    CHECKPOINTED,
    Submit("grace", Shape(4, "t4", 1, 2000), 30.0, comment=CHECKPOINT_COMMENT),
)
IMPOSSIBLE = Ask(
    "impossible",
    ("--gres=gpu:h100:8",),
    ONE_GPU,
    Submit("ada", Shape(8, "h100"), 1.0),
)
OVER_THE_LIMIT = Ask(
    "over-the-limit",
    ("-N6", "--gres=gpu:a10g:4", "--mem=4000"),
    GANG,
    Submit("ada", Shape(4, "a10g", 1, 4000), 1.0, nodes=6),
)
