"""Synthetic studies whose mixed models lme4 has fitted, and the same models as designs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from humanlike.stats.mixed import MixedDesign

FOLDER = Path(__file__).parent
CONDITIONS = np.array([4.0, 8.0, 16.0, 32.0])
RANDOM = ("1", "tz", "x", "x:tz")


def synthetic(
    seed: int,
    concepts: int,
    images: int,
    models: int,
    factor: list[list[float]],
    noise: float = 0.4,
    model_spread: float = 0.1,
    counts: bool = False,
    ragged: bool = False,
) -> pd.DataFrame:
    """One row a concept × image × condition × model; `factor` T gives the random coefficients T u of 1, tz, x, x:tz.

    Normal values are quantiles of uniform bits, whose stream does not change between versions of NumPy.
    """
    rng = np.random.Generator(np.random.Philox(seed))

    def gauss(*shape: int) -> np.ndarray:
        return ndtri(np.clip(rng.random(shape), 1e-12, 1 - 1e-12))

    grid = pd.MultiIndex.from_product(
        [range(concepts), range(images), CONDITIONS, range(models)], names=["concept", "image", "t", "model"]
    ).to_frame(index=False)
    if ragged:
        grid = grid[rng.random(len(grid)) < 0.15 + 0.8 * (grid["concept"] % 5) / 5].reset_index(drop=True)
    group = grid["concept"].to_numpy()
    grid["tz"] = (grid["t"] - grid["t"].mean()) / grid["t"].std(ddof=1)
    grid["x"] = 0.5 + 0.2 * gauss(len(grid)) + 0.1 * grid["tz"]
    b_KQ = gauss(concepts, 4) @ np.array(factor).T
    columns = np.column_stack([np.ones(len(grid)), grid["tz"], grid["x"], grid["x"] * grid["tz"]])
    mean = 0.3 + 0.1 * grid["tz"] + 0.2 * grid["x"] + 0.05 * grid["x"] * grid["tz"]
    mean = mean + model_spread * gauss(models)[grid["model"]]
    y = mean + (b_KQ[group] * columns).sum(axis=1) + noise * gauss(len(grid))
    grid["y"] = np.round(np.exp(1.5 + y)) if counts else y
    grid["concept"] = [f"c{i:03d}" for i in grid["concept"]]
    grid["model"] = [f"m{i:02d}" for i in grid["model"]]
    return grid


def column(table: pd.DataFrame, name: str) -> np.ndarray:
    """Product of the columns in a name as `x:tz`."""
    parts = [np.ones(len(table)) if part == "1" else table[part].to_numpy(float) for part in name.split(":")]
    return np.prod(parts, axis=0)


def design(table: pd.DataFrame, fixed: list[str], random: list[str]) -> MixedDesign:
    """Fixed terms by name; `model` stands for the treatment contrasts of that column, named as R does."""
    columns = {}
    for name in fixed:
        if name == "model":
            columns |= {f"model{m}": (table["model"] == m).to_numpy(float) for m in sorted(set(table["model"]))[1:]}
        else:
            columns["(Intercept)" if name == "1" else name] = column(table, name)
    z = {"(Intercept)" if name == "1" else name: column(table, name) for name in random}
    return MixedDesign(table["y"].to_numpy(), columns, z, table["concept"].to_numpy())


@pytest.fixture(scope="session")
def make_table() -> Callable[..., pd.DataFrame]:
    return synthetic


@pytest.fixture(scope="session")
def make_design() -> Callable[..., MixedDesign]:
    return design


@pytest.fixture(scope="session", params=sorted(p.stem for p in (FOLDER / "fixtures" / "lme4").glob("*.json")))
def lme4(request) -> tuple[Path, dict]:
    """A stored case: where it lies, and its data's arguments, terms, formulas and lme4's answers."""
    path = FOLDER / "fixtures" / "lme4" / f"{request.param}.json"
    return path, json.loads(path.read_text(encoding="utf-8"))
