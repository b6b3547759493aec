"""A made-up sweep of both experiments, with every table that figures are drawn from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks.object_learning_sweep import SweepSettings, analyse_sweep

NETWORKS = {"alexnet": 5, "resnet50": 9, "vgg16": 7}
RULES = ("square", "perceptron", "hinge", "mae", "exponential", "cross_entropy", "reinforce")
KINDS = ("translation", "backgrounds", "scale", "outplane", "inplane", "contrast", "delpixels", "blur", "noise")
KEY = ["backbone", "layer", "rule"]


def made_up_models():
    rng, rows = np.random.default_rng(0), []
    for backbone, depth in NETWORKS.items():
        for k in range(depth):
            x = k / (depth - 1)
            base = 0.006 + 0.09 * (1 - x) ** 1.5 + 0.006 * rng.random()
            for r, rule in enumerate(RULES):
                value = base * (1 + 0.03 * r / 7) + 2e-4 * rng.random()
                for experiment, factor in (("high_variation", 1.0), ("one_shot", 1.6 + 0.3 * rng.random())):
                    score = factor * value
                    rows.append(
                        {
                            "experiment": experiment, "backbone": backbone, "layer": f"block{k}", "relative_depth": x,
                            "rule": rule, "msen_paper": score, "msen_paper_ci_low": 0.95 * score,
                            "msen_paper_ci_high": 1.05 * score, "msen_v2": score - 0.0027, "lapse_rate": 0.05,
                            "accuracy": 0.88 - 3 * value, "consistency": 0.85 - 6 * value + 0.05 * rng.random(),
                            "accuracy_people": 0.82, "consistency_ceiling_low": 0.95, "consistency_ceiling_high": 0.985,
                            "p_null": 0.001, "noise_floor": 0.0027, "random_guess_paper": 0.1134 * factor**0,
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows)


def curve(trial, final, speed):
    return final - (final - 0.5) * np.exp(-(trial - 1) / speed)


def made_up_tables():
    rng, models = np.random.default_rng(1), made_up_models()
    trial = np.arange(1, 101)
    people = curve(trial, 0.86, 4.0)
    rows = models[models["experiment"] == "high_variation"]
    curves = pd.concat(
        [
            pd.DataFrame(
                {
                    **{k: r[k] for k in KEY},
                    "trial": trial,
                    "accuracy": curve(trial, r["accuracy"] + 0.02, 8.0),
                    "accuracy_people": people + 0.004 * np.sin(trial),
                    "std_error_people": 0.008,
                }
            )
            for r in rows.to_dict("records")
        ]
    )
    subtasks = pd.concat(
        [
            pd.DataFrame(
                {
                    "subtask": f"pair{s}",
                    "trial": trial,
                    "accuracy_people": rng.binomial(50, curve(trial, f, 4)) / 50,
                    "accuracy": rng.binomial(500, curve(trial, min(f + 0.02, 1.0), 8)) / 500,
                }
            )
            for s, f in enumerate(rng.beta(8, 1.5, 24) * 0.5 + 0.5)
        ]
    )
    levels = {"early": 0.725, "late": 0.854}
    shifts = {"all": 0.0, "1": 0.09, "2": 0.04, "3": -0.03, "4": -0.1}
    phases = pd.DataFrame(
        [
            {
                **{k: r[k] for k in KEY}, "phase": phase, "quartile": q, "accuracy_people": level + shift,
                "people_ci_low": level + shift - 0.02, "people_ci_high": level + shift + 0.02,
                "accuracy": r["accuracy"] + shift - (0.16 if phase == "early" else 0.0), "p_value": 0.01,
            }
            for r in rows.to_dict("records") for phase, level in levels.items() for q, shift in shifts.items()
        ]
    )  # fmt: skip
    one_shot = pd.DataFrame(
        [
            {
                **{k: r[k] for k in KEY}, "transformation": kind, "level": (j + 1) * 2.0**i,
                "accuracy": max(0.5, r["accuracy"] - 0.05 * j - 0.02 * (i % 4)), "std_error": 0.006,
                "accuracy_people": 0.97 - 0.04 * i * (j % 3) / 2, "std_error_people": 0.012,
            }
            for r in rows.to_dict("records") for j, kind in enumerate(KINDS) for i in range(4)
        ]
    )  # fmt: skip
    names = [f"subject {c}" for c in "ABCDEFGHIJKLMNOPQRSTUV"]
    final = np.sort(rng.normal(0.85, 0.06, len(names)).clip(0.6, 0.97))
    individuals = pd.DataFrame(
        {
            "participant": names, "accuracy": final, "std_error": 0.012, "accuracy_model": 0.88,
            "p_adjusted": np.where(final > 0.91, 0.001, 0.9),
        }
    )  # fmt: skip
    individual_curves = pd.concat(
        [
            pd.DataFrame({"participant": n, "trial": trial, "accuracy": rng.binomial(64, curve(trial, f, 4)) / 64})
            for n, f in zip(names, final, strict=True)
        ]
    )
    return {
        "models": models, "curves": curves, "subtask_curves": subtasks, "phases": phases, "one_shot": one_shot,
        "individuals": individuals, "individual_curves": individual_curves,
    }  # fmt: skip


@pytest.fixture(scope="session")
def inputs():
    return made_up_tables()


@pytest.fixture(scope="session")
def tables(inputs):
    noise = np.random.default_rng(2).normal(0, 3e-4, (len(inputs["models"]), 100))
    values = pd.DataFrame(
        inputs["models"]["msen_paper"].to_numpy()[:, None] + noise, columns=[f"r{b}" for b in range(100)]
    )
    replicates = pd.concat([inputs["models"][["experiment", *KEY]], values], axis=1)
    return analyse_sweep({**inputs, "replicates": replicates}, SweepSettings(strong_share=0.05, ranked=20)).tables
