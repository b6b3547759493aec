"""A judge of presence on this machine: a vision-language model is asked about every element, and P(yes) is read off."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from humanlike.backbones.arithmetic import DTYPES, fixed_arithmetic
from humanlike.backbones.progress import Progress
from humanlike.cores import own_cores
from humanlike.elements.cache import AnswerCache
from humanlike.elements.presence import ElementsOf, Presence, elements_by_item, presence_of
from humanlike.elements.prompts import Prompt, spoken
from humanlike.elements.vlm_answers import AnswerReader, Ask, LoadedReader, Loading
from humanlike.elements.vlm_files import ModelFiles, model_files
from humanlike.elements.vlm_loading import require_transformers
from humanlike.files import sha256_value
from humanlike.types import Features, Sketches

FORMAT = "vlm/1"
TOPIC = "presence"
_log = logging.getLogger(__name__)
Masses = tuple[float, float]
"""Probabilities of "yes" and of "no"; what is left of 1 lies outside both."""


@dataclass(frozen=True)
class TransformersJudge:
    """Asks a local vision-language model "is it drawn?" about one element at a time.

    P(present) = p(yes) / (p(yes) + p(no)), over all forms of both words. Where p(yes) + p(no) is below `min_mass` the
    model was about to say something else: the judgment is missing, never absent. Answers are kept on disk as they come,
    so that a run that was killed asks nothing twice; the model is not even loaded where all is known.

    Attributes:
        model: "owner/name" on Hugging Face, or a folder with `config.json` and safetensors.
        reader: How the model is asked; see `AnswerReader` and its classes.
        prompt: The question, with the blank {element} and perhaps {label}.
        revision: Commit, tag or branch; None: the main branch as it is when it is fetched. The commit goes into the
            record.
        trust_remote_code: Let Python files of the model run; the revision must be a commit then.
        device: "auto" (the GPU where there is one), "cpu", "cuda", "cuda:1", "mps".
        dtype: "float32", "bfloat16" or "float16".
        batch_size: Questions in one forward pass.
        processor: Further arguments of the processor, such as {max_pixels: 401408}.
        min_mass: Probability that "yes" and "no" must have together.
        threshold: Probability from which an element counts as present.
        cache: SQLite file with answers; None: none is kept.
        offline: True: never download.
        threads: CPU threads; None: half the cores.
        progress: Say how far it is.
        files: The model's files, found (or fetched) when the judge is made.

    Raises:
        ModuleNotFoundError: transformers is not installed.
        FileNotFoundError: The model is not here and cannot be fetched; see `model_files`.
        ValueError: A number or word is out of range, the prompt has other blanks, or see `model_files`.
    """

    model: str
    reader: AnswerReader
    prompt: Prompt
    revision: str | None = None
    trust_remote_code: bool = False
    device: str = "auto"
    dtype: str = "float32"
    batch_size: int = 8
    processor: Mapping[str, Any] = field(default_factory=dict)
    min_mass: float = 0.1
    threshold: float = 0.5
    cache: str | Path | None = None
    offline: bool | None = None
    threads: int | None = None
    progress: bool = True
    files: ModelFiles = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.batch_size < 1 or not 0 <= self.min_mass < 1 or not 0 < self.threshold < 1:
            raise ValueError(
                "a vision-language judge needs batch_size ≥ 1, min_mass in [0, 1) and threshold between 0 and 1; got "
                f"{self.batch_size}, {self.min_mass}, {self.threshold}"
            )
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads must be at least 1, got {self.threads}")
        if "{label}" in self.prompt.user + self.prompt.system:
            self.prompt.requiring("label", "element")
        else:
            self.prompt.requiring("element")
        if getattr(self.reader, "runs_remote_code", False) and not self.trust_remote_code:
            raise ValueError(
                f"transformers has no class for {self.model}: Python files of its repository would run. Read them, "
                "then set judge.trust_remote_code=true judge.revision=<the commit that you read>"
            )
        self._placed()
        require_transformers()
        found = model_files(self.model, self.revision, self.offline, self.trust_remote_code)
        object.__setattr__(self, "files", found)

    def _placed(self) -> torch.device:
        """The device.

        Raises:
            ValueError: There is none of that name here.
        """
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
        except RuntimeError as error:
            raise ValueError(f"device is {self.device!r}; it can be auto, cpu, cuda, cuda:1 or mps") from error
        here = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        if not here.get(device.type, False):
            raise ValueError(f"device={self.device} is not on this machine; use device=cpu, or auto")
        return device

    @property
    def source(self) -> str:
        """One line for the record."""
        kind = str(self.reader.identity["kind"]).partition("/")[0]
        short = self.files.revision[:12] if self.files.commit else self.files.revision[:18]
        return f"{self.files.name} by the {kind} reader at {short}, prompt {self.prompt.source}, {self.dtype}"

    @property
    def ready(self) -> str:
        """One line that says what lies on this machine; see `humanlike prefetch`."""
        return f"{self.files.name} ({self.files.revision}) in {self.files.folder}"

    def judge(self, sketches: Sketches, elements: ElementsOf, features: Features | None = None) -> Presence:
        """See `PresenceJudge`; features are not looked at.

        Raises:
            ValueError: The model cannot be loaded or does not take an image, which is named.
            RuntimeError: The device has too little memory.
        """
        del features
        names = elements_by_item(sketches, elements)
        ids = sketches.table["sketch_id"].tolist()
        p: list[list[float]] = []
        masses: list[Masses] = []
        reasons: dict[tuple[str, str], str] = {}
        for i, found in enumerate(self._answers(sketches, names)):
            row = []
            for element, answer in zip(names[i], found, strict=True):
                why = answer if isinstance(answer, str) else self._unusable(answer)
                if not isinstance(answer, str):
                    masses.append(answer)
                if why:
                    reasons[ids[i], element] = why
                row.append(np.nan if why or isinstance(answer, str) else answer[0] / (answer[0] + answer[1]))
            p.append(row)
        presence = presence_of(ids, names, p, self.source, self.threshold, reasons)
        facts = self._facts(masses)
        _log.info("%s: %s", self.source, {k: v for k, v in facts.items() if k not in ("reader", "prompt", "model")})
        return replace(presence, facts=facts)

    def _unusable(self, answer: Masses) -> str:
        """Why masses give no probability, or ""."""
        if not np.isfinite(answer).all():
            return "the model gave no number"
        total = sum(answer)
        if total < self.min_mass or total <= 0:
            return f"yes and no have less than {self.min_mass:g} of the probability"
        return ""

    def _answers(self, sketches: Sketches, names: list[tuple[str, ...]]) -> Iterator[list[Masses | str]]:
        """Per item the answer about each element, or why there is none; in item order."""
        concepts = sketches.table["concept"].tolist()
        progress = Progress(sum(map(bool, names)), f"elements by {self.files.name}", self.progress)
        loaded: LoadedReader | None = None
        with AnswerCache(":memory:" if self.cache is None else self.cache) as cache:
            for i, row in enumerate(names):
                if not row:
                    yield []
                    continue
                asks = [self._ask(concepts[i], element) for element in row]
                keys = self._keys(sketches.images.content_hash(i), asks, row)
                known = [cache.get(key) for key in keys]
                found: dict[int, Masses | str] = {
                    j: (float(k["yes"]), float(k["no"])) for j, k in enumerate(known) if k is not None
                }
                todo = [j for j in range(len(row)) if j not in found]
                if todo:
                    loaded = self._loaded() if loaded is None else loaded
                    new = self._asked(loaded, sketches, i, [asks[j] for j in todo])
                    for j, answer in zip(todo, new, strict=True):
                        found[j] = answer
                        if not isinstance(answer, str) and np.isfinite(answer).all():
                            cache.put(keys[j], {"yes": answer[0], "no": answer[1]}, self.files.name, TOPIC)
                progress.advance(1)
                yield [found[j] for j in range(len(row))]
        progress.close()

    def _ask(self, concept: str, element: str) -> Ask:
        blanks = {"label": spoken(concept), "element": element}
        return Ask(self.prompt.filled(**blanks), self.prompt.filled_system(**blanks))

    def _keys(self, image: str, asks: list[Ask], elements: tuple[str, ...]) -> list[str]:
        """Keys of answers: whatever can change one is in them."""
        import transformers

        same = [FORMAT, self.files.name, self.files.revision, dict(self.reader.identity), dict(self.processor),
                self.dtype, transformers.__version__, image]  # fmt: skip
        return [sha256_value([same, ask.system, ask.user, e]) for ask, e in zip(asks, elements, strict=True)]

    def _loaded(self) -> LoadedReader:
        device = self._placed()
        loading = Loading(device, DTYPES[self.dtype], self.batch_size, self.trust_remote_code, dict(self.processor))
        return self.reader.load(self.files.folder, loading)

    def _asked(self, loaded: LoadedReader, sketches: Sketches, i: int, asks: list[Ask]) -> list[Masses | str]:
        try:
            image = sketches.images.load(i).convert("RGB")
        except (OSError, ValueError):
            return ["the image could not be read"] * len(asks)
        where = sketches.images.describe(i)
        threads = self.threads if self.threads is not None else max(1, len(own_cores()) // 2)
        try:
            with fixed_arithmetic(self._placed().type, threads=threads):
                found_Q2 = np.exp(loaded.log_masses(image, asks))
        except torch.OutOfMemoryError as error:
            raise RuntimeError(
                f"{self.device} ran out of memory at {where}: lower judge.batch_size (now {self.batch_size}), or take "
                "judge.dtype=bfloat16"
            ) from error
        except ValueError as error:
            raise ValueError(f"{self.files.name} at {where}: {error}") from error
        return [(float(yes), float(no)) for yes, no in found_Q2]

    def _facts(self, masses: list[Masses]) -> dict[str, Any]:
        """What goes into the record, with the probability that lay outside yes and no."""
        outside = np.array([max(0.0, 1 - sum(m)) for m in masses if np.isfinite(m).all()])
        astray = int((outside > 0.5).sum())
        flags = {
            "judge_runs_remote_code": self.trust_remote_code,
            f"judge_reduced_precision:{self.dtype}": self.dtype != "float32",
            f"judge_mass_outside:{astray}": astray,
        }
        return {
            "model": self.files.name,
            "revision": self.files.revision,
            "reader": dict(self.reader.identity),
            "prompt": self.prompt.source,
            "dtype": self.dtype,
            "min_mass": self.min_mass,
            "mass_outside_mean": float(outside.mean()) if len(outside) else None,
            "mass_outside_max": float(outside.max()) if len(outside) else None,
            "below_min_mass": int((1 - outside < self.min_mass).sum()),
            "flags": [flag for flag, holds in flags.items() if holds],
        }
