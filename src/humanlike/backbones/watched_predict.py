"""Lightning's predict loop on several processes, with the same errors as on one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytorch_lightning as pl
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from humanlike.backbones.extractor import FeatureExtractor
from humanlike.data.images import BadImageError
from humanlike.processes import FAILED, LostProcessError, StuckProcessError, signs

KNOWN: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        *(BadImageError, ValueError, TypeError, OSError, FileNotFoundError, PermissionError),
        *(LostProcessError, StuckProcessError),
    )
}
"""Errors that the process which forked the others raises again as they were; others it names."""


def predict_watched(trainer: pl.Trainer, extractor: FeatureExtractor) -> None:
    """Run the predict loop; the death or failure of one process ends all of them with a sentence.

    Raises:
        LostProcessError: A process has died or gone silent, or has failed in a way that cannot be told again.
        StuckProcessError: A process is alive, but its work does not go on.
        BadImageError: As on one process; so do the other errors of `KNOWN`.
    """
    try:
        trainer.predict(extractor, return_predictions=False)
    except (ProcessRaisedException, ProcessExitedException) as error:
        raise _as_it_was(error, extractor, trainer.world_size) from None
    except BaseException as error:
        extractor.leave(error)
        if late := _who_is_late(error, trainer.world_size):
            raise late from None
        raise
    else:
        extractor.leave()
        if trainer.is_global_zero:
            extractor.tidy()


def _who_is_late(error: BaseException, world_size: int) -> LostProcessError | None:
    """What a collective operation says that has waited for its own limit, in words; None for any other error."""
    if not isinstance(error, RuntimeError) or not re.search(r"timed? ?out", str(error), re.IGNORECASE):
        return None
    return LostProcessError(
        f"the {world_size} processes did not come together: one of them has not reached the extraction of features, or "
        f"hangs on its way ({str(error).strip().splitlines()[0][:200]}); the log of each process says what it did last"
    )


def _as_it_was(
    error: ProcessRaisedException | ProcessExitedException, extractor: FeatureExtractor, world_size: int
) -> Exception:
    """The error of a forked process, out of what it and the others left."""
    left = signs(extractor.signs)
    extractor.tidy()
    first = error.error_index
    if isinstance(error, ProcessExitedException) and left.get(first, {}).get("state") != FAILED:
        how = f"was killed ({error.signal_name})" if error.signal_name else f"ended with status {error.exit_code}"
        return LostProcessError(
            f"process {first + 1} of {world_size} {how} while it computed features; what was computed so far is kept; "
            "run the same command again to go on"
        )
    told = {rank: sign for rank, sign in left.items() if sign.get("state") == FAILED and not _is_consequence(sign)}
    rank = first if first in told else min(told, default=first)
    sign = told.get(rank) or {"why": str(error).strip().splitlines()[-1]}
    kind, args = KNOWN.get(str(sign.get("error"))), sign.get("args") or []
    return (
        kind(*args) if kind and args else LostProcessError(f"process {rank + 1} of {world_size} failed: {sign['why']}")
    )


def _is_consequence(sign: Mapping[str, Any]) -> bool:
    """Whether a process failed because another one had."""
    return sign.get("error") in {LostProcessError.__name__, "SIGTERMException"} or any(
        word in str(sign.get("why")) for word in ("Connection closed by peer", "gloo", "NCCL")
    )
