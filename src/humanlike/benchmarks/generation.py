"""Honest evaluation of generated sketches: by the critic that trained them and by judges that never did.

python evaluate.py benchmark=generation sketches=FOLDER
python evaluate.py benchmark=generation sketches=FOLDER_AFTER before=FOLDER_BEFORE
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from humanlike.benchmarks.generation_comparison import AFTER, BEFORE
from humanlike.benchmarks.generation_evaluation import evaluated
from humanlike.benchmarks.generation_sketches import SketchSet
from humanlike.benchmarks.sea import Measured
from humanlike.elements.critic import Critic, fit_critic
from humanlike.elements.critic_scratch import doodle_judge_of
from humanlike.files import sha256_value
from humanlike.interfaces import Backbone
from humanlike.metrics.functional.sea import SEAParameters
from humanlike.rng import generator
from humanlike.types import Sketches

CriticMaker = Callable[..., Critic]
REFERENCE = "reference"


class GenerationBenchmark:
    """Scores a folder of sketches, or two (before and after), against held-out sketches of a data set.

    The critic is fitted on the run's backbone and data set; a share of the data set's sources is kept out of the fit
    and serves as reference: sketches by people, or doodles. Judges are made by their own configuration and see neither.

    Args:
        sketches: Folder or zip of SVG, PNG or ndjson sketches (see `SketchSet.of_folder`); one with folders `before`
            and `after` is a comparison.
        before: The same before training, for a comparison.
        critic: Makes the training critic from `backbone=`, `sketches=`, `layer=`, `cache_dir=` and `seed=`.
        judges: Make judges from `sketches=` and `cache_dir=`.
        sizes: Sides of the hard raster in pixels; scores are means over them.
        metric: Hyperparameters of SEA by name.
        reference_share: Share of the data set's sources a concept that is kept as reference.
        credit: Number of sketches a set for the credit map of strokes (evenly spread); 0: none.
        tolerance: Share of P that pruning may cost.
        replicates: Bootstrap replicates.

    Raises:
        ValueError: A number is out of range, or there is no judge.
    """

    identifier = "generation"
    version = "1"
    bibtex = """@software{humanlike,
  title = {humanlike: how human-like does a model see and draw?},
  note  = {benchmark generation}
}"""

    def __init__(
        self,
        sketches: str | Path | None = None,
        before: str | Path | None = None,
        critic: CriticMaker = fit_critic,
        judges: Mapping[str, CriticMaker] | Sequence[CriticMaker] = (doodle_judge_of,),
        sizes: Sequence[int] = (128, 224),
        metric: Mapping[str, Any] | None = None,
        reference_share: float = 0.25,
        credit: int = 8,
        tolerance: float = 0.02,
        replicates: int = 1000,
    ) -> None:
        if not 0 < reference_share < 1:
            raise ValueError(f"reference_share must lie between 0 and 1, got {reference_share}")
        if replicates < 2 or credit < 0 or not 0 <= tolerance < 1:
            raise ValueError(
                f"replicates must be 2 or more, credit 0 or more and tolerance in [0, 1), got {replicates}, {credit} "
                f"and {tolerance}"
            )
        self.sketches, self.before, self.critic = sketches, before, critic
        self.judges = tuple(judges.values()) if isinstance(judges, Mapping) else tuple(judges)
        if not self.judges:
            raise ValueError("benchmark=generation needs a judge besides the critic, for example critic/doodle_judge")
        given = {name: value for name, value in (metric or {}).items() if value is not None}
        self.parameters = SEAParameters(**given)
        self.sizes, self.reference_share = tuple(int(s) for s in sizes), reference_share
        self.credit, self.tolerance, self.replicates = credit, tolerance, replicates

    def run_backbone(
        self,
        backbone: Backbone,
        data: Sketches,
        *,
        layer: str | None = None,
        seed: int = 0,
        cache_dir: str | Path | None = None,
        trainer: Any = None,
        extraction: Mapping[str, Any] | None = None,
    ) -> Measured | None:
        """Fit critic and judges, let them look at the sketches, and compare.

        Args:
            backbone: The training critic's network.
            data: Annotated sketches: what the critic is fitted on, and the reference.
            layer: The critic's layer; the backbone's default one if None.
            seed: Global seed.
            cache_dir: Where features and judges are kept.
            trainer: Lightning trainer of the extraction.
            extraction: Keywords of `extract_features`.

        Returns:
            The result; None in every process but the first.

        Raises:
            TypeError: `data` are no sketches.
            ValueError: There are no sketches to score, or of concepts that the data set has not.
        """
        if not isinstance(data, Sketches):
            raise TypeError(f"benchmark=generation needs annotated sketches, got {type(data).__name__}")
        sets = self.sets(data.labels)
        kept, held_out = split_by_source(data, self.reference_share, seed)
        options = {k: v for k, v in (extraction or {}).items() if k not in ("on_bad_image", "progress")}
        critic = self.critic(
            backbone=backbone, sketches=kept, layer=layer, cache_dir=cache_dir, seed=seed, trainer=trainer, **options
        )
        if trainer is not None and not trainer.is_global_zero:
            return None
        judges = [make(sketches=data, cache_dir=cache_dir) for make in self.judges]
        result = evaluated(
            sets,
            critic,
            judges,
            SketchSet.of_sketches(held_out, REFERENCE),
            condition_M=held_out.table["condition"].to_numpy(float),
            condition_unit=data.condition_unit,
            sizes=self.sizes,
            parameters=self.parameters,
            credit=self.credit,
            tolerance=self.tolerance,
            replicates=self.replicates,
            seed=seed,
            about={"reference": data.source, "reference_items": len(held_out), "flags": list(data.flags)},
        )
        hashes = {
            "weights": backbone.weights_hash,
            **critic.record.get("hashes", {}),
            "sketches": sha256_value([_contents(s) for s in sets]),
        }
        return Measured(result, critic.layer, hashes, {"judges": {j.name: _told(j) for j in judges}})

    def sets(self, labels: Sequence[str]) -> list[SketchSet]:
        """The set to score, and the one before it if there is one.

        Raises:
            ValueError: No folder was given.
            FileNotFoundError: What `sketches` or `before` names is not there.
        """
        if self.sketches is None:
            raise ValueError(
                "benchmark=generation scores a folder of SVG, PNG or ndjson sketches: give sketches=FOLDER, and for a "
                "comparison before=FOLDER too"
            )
        after, before = Path(self.sketches), None if self.before is None else Path(self.before)
        if before is None and (after / BEFORE).is_dir() and (after / AFTER).is_dir():
            after, before = after / AFTER, after / BEFORE
        found = [] if before is None else [_read("before", before, labels, BEFORE)]
        return [*found, _read("sketches", after, labels, AFTER)]


def _read(setting: str, root: Path, labels: Sequence[str], name: str) -> SketchSet:
    """`SketchSet.of_folder`; what is missing is told with the setting that names it."""
    try:
        return SketchSet.of_folder(root, labels, name)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error}: {setting}= must name a folder or zip of SVG, PNG or ndjson sketches"
        ) from error


def split_by_source(data: Sketches, share: float, seed: int) -> tuple[Sketches, Sketches]:
    """Sketches to fit on, and those of a share of every concept's sources (at least one, and one left).

    Raises:
        ValueError: A concept has one source only.
    """
    table = data.table
    held: set[str] = set()
    for concept, sources in table.groupby("concept", sort=True)["image_id"]:
        names = sorted(map(str, sources.unique()))
        if len(names) < 2:
            raise ValueError(f"{data.name}: {concept!r} has one source only; the reference needs another one")
        count = min(max(1, round(share * len(names))), len(names) - 1)
        rng = generator(seed, "generation", "reference", str(concept))
        held |= {f"{concept}\0{names[i]}" for i in rng.permutation(len(names))[:count]}
    of_N = (table["concept"].astype(str) + "\0" + table["image_id"].astype(str)).isin(held).to_numpy()
    return data.select(np.flatnonzero(~of_N)), data.select(np.flatnonzero(of_N))


def _contents(sketches: SketchSet) -> list[tuple[str, str]]:
    """Name and content of every sketch."""
    return [
        (name, d.digest() if d is not None else hashlib.sha256(p.tobytes() if p is not None else b"").hexdigest())
        for name, d, p in zip(sketches.ids, sketches.drawings, sketches.pictures, strict=True)
    ]


def _told(judge: Critic) -> dict[str, Any]:
    """What is known of a judge, for the record."""
    return {k: v for k, v in judge.record.items() if k in ("dataset", "items", "held_out", "cpu_seconds", "settings")}
