"""What the projection of wide layers does to scores: Gaussian, structured (SRFT), and none, on the embedded demo.

python perf/object_learning_projection.py [--layers blocks.5 blocks.6 bn2] [--seeds 5] [--subtasks 8]

Novel objects, EfficientNet-Lite0 and simulated people, who learn by the square rule on `pre_logits` (1,280 activations,
never projected), so that no option is the truth's. Every layer is scored with each seed of each projection on the same
sessions of models and people and the same resamples: what differs is the projection alone. Printed are MSE_n and
accuracy of one rule with the interval of the first seed, mean and standard deviation over seeds, and the difference to
the exact inner products with its interval (paired resamples; first seed).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from humanlike.backbones.gram import LayerGram, centred_gram, warmup_statistics
from humanlike.backbones.projection import PROJECTIONS
from humanlike.backbones.whole_image import with_whole_images
from humanlike.benchmarks.object_learning import PAPER_RULE_NAMES
from humanlike.benchmarks.object_learning_people import high_variation_people, with_known_people
from humanlike.benchmarks.object_learning_scores import LayerResult, layer_result
from humanlike.benchmarks.object_learning_sessions import ModelSessions
from humanlike.data.object_learning import ObjectLearningData
from humanlike.rng import address_seed
from humanlike.stats.intervals import basic
from humanlike.stats.learning_resampling import draw_sessions

TRUTH, FEATURES, SESSIONS, REPLICATES, BATCH, ROWS = "pre_logits", 2048, 500, 1000, 16, 64
Activations = dict[str, tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Scored:
    """One seed of one projection of a layer: all rules."""

    result: LayerResult
    seconds: float

    def of(self, rule: str) -> tuple[dict[str, float], np.ndarray]:
        """The row of a rule and its replicates of MSE_n."""
        at = list(self.result.models["rule"]).index(rule)
        replicates = self.result.replicates.drop(columns="rule").to_numpy()[at]
        return dict(self.result.models.iloc[at]), replicates


def activations(data: ObjectLearningData, layers: list[str], folder: Path) -> Activations:
    """Layer → (warm-up images, images) × activations, in files, from one pass of the packaged network."""
    with initialize_config_dir(str(Path(__file__).resolve().parents[1] / "conf"), version_base=None):
        config = compose("evaluate", ["benchmark=object_learning", "dataset=novel_objects"])
    network = with_whole_images(instantiate(config.backbone))
    assert data.warmup is not None
    found: dict[str, list[np.ndarray]] = {layer: [] for layer in layers}
    for part in (data.warmup, data.images):
        for start in range(0, len(part), BATCH):
            rows = range(start, min(start + BATCH, len(part)))
            x_BCHW = torch.stack([network.transform(part.images.load(i)) for i in rows])
            with torch.inference_mode():
                f = network.features(x_BCHW, layers)
            for layer in layers:
                rows_BD = f[layer].flatten(1).numpy()
                if start == 0:
                    path = folder / f"{layer}-{len(found[layer])}.f32"
                    found[layer].append(np.memmap(path, np.float32, "w+", shape=(len(part), rows_BD.shape[1])))
                found[layer][-1][rows.start : rows.stop] = rows_BD
    return {layer: (warm, images) for layer, (warm, images) in found.items()}


def projected(f_ND: np.ndarray, projection: str, seed: int) -> tuple[np.ndarray, float]:
    """(N, 2048) rows and the CPU seconds they took, drawing included."""
    start = time.process_time()
    project = PROJECTIONS[projection](f_ND.shape[1], FEATURES, seed)
    project.keep = False
    rows = ROWS if projection == "srft" else len(f_ND)  # the Gaussian matrix, kept nowhere, is drawn once for all rows
    parts = [project(torch.from_numpy(np.array(f_ND[i : i + rows]))).numpy() for i in range(0, len(f_ND), rows)]
    return np.concatenate(parts), time.process_time() - start


def gram(data: ObjectLearningData, warm_MD: np.ndarray, f_ND: np.ndarray) -> LayerGram:
    """Inner products of every subtask's images."""
    mean_D, norm_M = warmup_statistics([warm_MD])
    rows = [data.subtask_rows(s)[0] for s in range(len(data.subtasks))]
    return LayerGram(tuple(centred_gram(f_ND[r], mean_D) for r in rows), norm_M, len(mean_D))


def options(seeds: int) -> Iterator[tuple[str, int]]:
    """Projection and seed; without projection there is one."""
    yield "none", 0
    for projection in PROJECTIONS:
        for seed in range(seeds):
            yield projection, seed


def lines(layer: str, width: int, scored: dict[str, list[Scored]], rule: str) -> Iterator[str]:
    """Rows of a Markdown table."""
    exact, exact_B = scored["none"][0].of(rule)
    for projection, runs in scored.items():
        rows, replicates = zip(*(run.of(rule) for run in runs), strict=True)
        first, value_K = rows[0], np.array([row["msen_paper"] for row in rows])
        accuracy_K = np.array([row["accuracy"] for row in rows])
        all_rules_K = np.array([run.result.models["msen_paper"].mean() for run in runs])
        cells = [f"{layer} ({width:,})", projection]
        cells.append(f"{1e3 * value_K[0]:.2f} [{1e3 * first['msen_paper_ci_low']:.2f}, "
                     f"{1e3 * first['msen_paper_ci_high']:.2f}]")  # fmt: skip
        if len(runs) > 1:
            difference = basic(value_K[0] - exact["msen_paper"], replicates[0] - exact_B)
            cells.append(f"{1e3 * value_K.mean():.2f} ± {1e3 * value_K.std(ddof=1):.2f}")
            cells.append(f"{1e3 * (value_K[0] - exact['msen_paper']):+.2f} "
                         f"[{1e3 * difference.low:+.2f}, {1e3 * difference.high:+.2f}]")  # fmt: skip
            cells.append(f"{accuracy_K.mean():.4f} ± {accuracy_K.std(ddof=1):.4f}")
        else:
            cells += ["", "", f"{accuracy_K[0]:.4f}"]
        cells.append(f"{1e3 * all_rules_K.mean():.2f}")
        cells.append(f"{np.median([run.seconds for run in runs]):.2f}")
        yield "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", nargs="+", default=["blocks.5", "blocks.6", "bn2"])
    parser.add_argument("--rule", default="square", choices=PAPER_RULE_NAMES)
    for name, value in (("seeds", 5), ("subtasks", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    from humanlike.data.object_learning_demo import novel_objects

    data = novel_objects(subtasks=given.subtasks)
    with tempfile.TemporaryDirectory() as folder:
        found = activations(data, [*given.layers, TRUTH], Path(folder))
        truth = gram(data, *found.pop(TRUTH)).calibrated()
        data = with_known_people(data, truth.__getitem__)
        people = high_variation_people(data, SESSIONS, REPLICATES, 0)
        sessions = ModelSessions(data, SESSIONS, 0, PAPER_RULE_NAMES)
        draws = draw_sessions(np.full(given.subtasks, SESSIONS), REPLICATES, 0, "model")
        assert people is not None
        print(f"people's accuracy {people.share_ST.mean():.4f}, noise floor {1e3 * people.null.noise_floor:.2f}e-3")
        print("| layer (width) | projection | MSE_n × 10³ [95%] | mean ± sd over seeds | less none [95%] "
              "| accuracy | MSE_n × 10³, mean of 7 rules | CPU s |")  # fmt: skip
        print("|---|---|---|---|---|---|---|---|")
        for layer, (warm_MD, f_ND) in found.items():
            scored: dict[str, list[Scored]] = {}
            for projection, seed in options(given.seeds):
                warm, rows, seconds = warm_MD, f_ND, 0.0
                if projection != "none":
                    both_ND = np.concatenate([warm_MD, f_ND])
                    own = address_seed(seed, "projection of layer", layer)
                    both, seconds = projected(both_ND, projection, own)
                    warm, rows = both[: len(warm_MD)], both[len(warm_MD) :]
                start = time.process_time()
                inner = gram(data, warm, rows)
                seconds += time.process_time() - start
                result = layer_result(inner, sessions, people, draws, "paper")
                scored.setdefault(projection, []).append(Scored(result, seconds))
            for line in lines(layer, f_ND.shape[1], scored, given.rule):
                print(line, flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
