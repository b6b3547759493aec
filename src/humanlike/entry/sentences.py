"""Errors as a person wants to read them."""

from __future__ import annotations

import errno
import re

EXPECTED = (
    ValueError,
    TypeError,
    OSError,
    KeyError,
    ImportError,
)
TRAINER = ("pytorch_lightning.utilities.exceptions", "lightning_fabric.utilities.exceptions")


def sentence(error: BaseException, traceback: str = "debug=true") -> str:
    """One sentence for an error: what went wrong, and what to do where that is known.

    Errors that the project raises on purpose already are sentences. Interpolation failures name the full key; anything
    unexpected is given with its type and the advice to look at the traceback.

    Args:
        error: The error.
        traceback: What the command at work takes to show one.
    """
    from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

    from humanlike.data.images import BadImageError

    if isinstance(error, OmegaConfBaseException):
        key = getattr(error, "full_key", None)
        wanted = re.search(r"Missing mandatory value: ([\w.]+)", str(error))  # by a setting that refers to it
        if isinstance(error, MissingMandatoryValue) or wanted:
            key = wanted[1] if wanted else key
            return f"{key} has no default: give it on the command line, {key}=VALUE"
        first = str(error).splitlines()[0]
        return f"the configuration at {key!r} cannot be resolved: {first}" if key else first
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and "disk is full" not in str(error):
        return f"the disk is full ({error}); free space, or point paths.output_dir and paths.cache at another disk"
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        return re.sub(r"^\[Errno \d+\] ", "", str(error))
    if isinstance(error, MemoryError):
        return "not enough memory; a smaller data set, extraction.micro_batch or benchmark.replicates needs less"
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    if isinstance(error, BadImageError):
        return f"{error}; mend or remove it (extraction.on_bad_image=skip of evaluate.py leaves such images out)"
    if type(error).__module__.startswith(TRAINER):
        return f"the trainer cannot work as configured (trainer.*): {' '.join(str(error).split())}"
    if isinstance(error, EXPECTED) or type(error).__module__.startswith("humanlike"):
        return re.sub(r"^\[Errno \d+\] ", "", " ".join(str(error).split())) or type(error).__name__
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said} (unexpected; run again with {traceback} for the traceback)"
