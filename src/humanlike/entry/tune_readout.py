"""One setting of the readout, judged without the test fold: `python train.py -m experiment=tune_readout`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from pytorch_lightning.loggers import Logger

from humanlike.backbones.features import extract_features
from humanlike.entry.head_training import check_fold, folds_of
from humanlike.files import write_json
from humanlike.interfaces import Backbone
from humanlike.readouts import LogisticReadout
from humanlike.readouts.folds import SmallClassError
from humanlike.types import Sketches

SMALLEST = float(np.finfo(np.float32).tiny)


def validate_readout(
    backbone: Backbone,
    data: Sketches,
    out_dir: str | Path,
    *,
    layer: str | None = None,
    C: float = 1.0,
    n_splits: int = 5,
    test_fold: int = 0,
    inner_splits: int = 5,
    measure_test: bool = False,
    pool: str | None = None,
    cache_dir: str | Path | None = None,
    seed: int = 0,
    resume: bool = True,
    trainer_kwargs: Mapping[str, Any] | None = None,
    loggers: Sequence[Logger] = (),
) -> dict[str, Any]:
    """Cross-validate a certified readout on all sources but those of the test fold; write `metrics.json`.

    A search over `layer` and `C` goes by `inner_loss`, which has not seen the test fold: chosen there and measured on
    `test_fold` (with `measure_test`, once, at the end), the readout's score is that of nested selection. The outer
    folds are those of `LogisticReadout`, grouped by `image_id`.

    Args:
        backbone: The network.
        data: Items with concepts.
        out_dir: The run's folder.
        layer: Layer of the backbone; None: its default.
        C: Inverse strength of the penalty.
        n_splits: Outer folds.
        test_fold: The outer fold that is kept out.
        inner_splits: Folds of the cross-validation inside the others.
        measure_test: Also fit on all the others and measure on the test fold. Leave it off while searching.
        pool: See `extract_features`.
        cache_dir: Folder of feature caches.
        seed: Global seed of the folds.
        resume: Taken for the sake of the command; features that exist are used in any case.
        trainer_kwargs: Taken for the sake of the command; the readout has a solver of its own.
        loggers: Lightning loggers.

    Returns:
        `inner_loss` (mean cross-entropy, nats) and `inner_accuracy`; `test_loss` and `test_accuracy` with
        `measure_test`; counts, settings and the certificate of the fits. The same as `metrics.json`.

    Raises:
        ValueError: For a fold that is none, a layer that is none, or a class with fewer sources than folds.
    """
    started = time.perf_counter()
    check_fold(test_fold, n_splits)
    layer = layer or backbone.default_layer
    features = extract_features(backbone, data, [layer], cache_dir=cache_dir, pool=pool)[layer]
    table = data.table.iloc[features.rows]
    label_N, group_N = data.target_N[features.rows], table["image_id"].to_numpy()
    train_N = folds_of(data, features.rows, n_splits, seed)[features.rows] != test_fold
    readout = LogisticReadout(C=C, n_splits=inner_splits, seed=seed)
    try:
        p_ML = readout.out_of_fold_proba(features.f_ND[train_N], label_N[train_N], len(data.labels), group_N[train_N])
    except SmallClassError as error:
        concept = data.labels[int(cast("int", error.label))]
        raise error.worded(concept, "sources", setting="task.inner_splits", otherwise="") from None
    result: dict[str, Any] = {
        **_measured("inner", p_ML, label_N[train_N]),
        "num_train": int(train_N.sum()),
        "num_test": int((~train_N).sum()),
        "certificate": readout.certificate(),
    }
    if measure_test:
        fitted = LogisticReadout(C=C, seed=seed).fit(features.f_ND[train_N], label_N[train_N], len(data.labels))
        result |= _measured("test", fitted.predict_proba(features.f_ND[~train_N]), label_N[~train_N])
    for logger in loggers:
        logger.log_metrics({k: v for k, v in result.items() if isinstance(v, float)})
        logger.save()
    result |= {
        "layer": layer,
        "dataset": data.name,
        "backbone": backbone.name,
        "hashes": dict(features.hashes),
        "flags": list(data.flags),
        "settings": {
            "C": C,
            "n_splits": n_splits,
            "test_fold": test_fold,
            "inner_splits": inner_splits,
            "pool": pool,
            "seed": seed,
        },
        "seconds": time.perf_counter() - started,
    }
    write_json(Path(out_dir) / "metrics.json", result)
    return result


def _measured(part: str, p_NL: np.ndarray, label_N: np.ndarray) -> dict[str, float]:
    p_N = p_NL[np.arange(len(label_N)), label_N].astype(np.float64)
    return {
        f"{part}_loss": float(-np.log(np.maximum(p_N, SMALLEST)).mean()),
        f"{part}_accuracy": float((p_NL.argmax(1) == label_N).mean()),
    }
