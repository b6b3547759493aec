"""Which of the processes of a run this is, by what its starter left in the environment.

Legend: a rank counts processes from 0; srun, torchrun and Lightning's trainer each name it in their own way.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Which of several processes of a run this is.

    Attributes:
        rank: 0 for the process that writes results, another number in every other one: 0 … world_size - 1 under
            torchrun and srun; elsewhere with gaps between machines whose processes nobody has counted.
        world_size: Number of processes, or 0 where only the trainer knows it.
        token: The same word in all processes of a run, and in no other run at the same time.
        starter: "torchrun", "srun", "trainer", which has started this process as a copy of the first of its machine,
            or "hand" for a process on a further machine that a person or a script has started.
    """

    rank: int
    world_size: int
    token: str
    starter: str

    @property
    def is_first(self) -> bool:
        """Whether this process writes results."""
        return self.rank == 0


ALONE = Place(0, 1, "", "")
A_MACHINE = 1000  # ranks between two machines: more than one has processes


def place() -> Place:
    """This process's place, from what its starter left in the environment; `ALONE` where nothing did.

    Example:
        >>> place() == ALONE or place().world_size > 1
        True
    """
    known = os.environ
    if "TORCHELASTIC_RUN_ID" in known and int(known.get("WORLD_SIZE", "1")) > 1:
        names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")
        token = _word(*(known.get(name, "") for name in names))
        return Place(int(known["RANK"]), int(known["WORLD_SIZE"]), token, "torchrun")
    named_by_hand = known.get("SLURM_JOB_NAME") in {"bash", "interactive"}
    if "SLURM_STEP_ID" in known and int(known.get("SLURM_STEP_NUM_TASKS", "1")) > 1 and not named_by_hand:
        token = _word(*(known.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")))
        return Place(int(known["SLURM_PROCID"]), int(known["SLURM_STEP_NUM_TASKS"]), token, "srun")
    machine, own = int(known.get("NODE_RANK", "0")), int(known.get("LOCAL_RANK", "0"))
    if machine > 0 or own > 0:
        size = int(known.get("WORLD_SIZE", "0"))
        rank = machine * (size // max(1, int(known.get("NNODES", "1"))) or A_MACHINE) + own
        token = _word(known.get("MASTER_ADDR", ""), known.get("MASTER_PORT", ""))
        # The trainer tells its copies how many processes there are; the first of a machine is nobody's copy.
        return Place(rank, size, token, "trainer" if own and size else "hand")
    return ALONE


def _word(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
