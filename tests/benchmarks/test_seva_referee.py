"""Every cell metric and alignment of the three presets against a naive port of the published formulas.

The referee works on long tables of text labels with pandas groupby, scipy and scikit-learn, one cell at a time; it
shares no code with the package but the draws of the bootstrap.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cosine, jensenshannon
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import auc, cohen_kappa_score

from humanlike.benchmarks.seva import SevaBenchmark
from humanlike.stats.cell_bootstrap import image_weights
from humanlike.stats.cell_design import CellDesign

KEY = ["concept", "condition"]
METRICS = ("accuracy", "entropy", "snp")


def long_answers(data) -> pd.DataFrame:
    """One row a guess: sketch, concept, condition, participant, order (1 = first guess), label."""
    merged = data.responses.table.merge(data.table, on="sketch_id")
    guesses = [f"guess_{i}" for i in range(1, 6)]
    long = merged.melt(id_vars=["participant", "sketch_id", *KEY, "image_id"], value_vars=guesses, value_name="label")
    long["order"] = long["variable"].str[-1].astype(int)
    return long.dropna(subset="label").rename(columns={"sketch_id": "sketch"})


def long_model(data, features) -> pd.DataFrame:
    """One row a sketch: its top-1 label and its probabilities."""
    rows = data.table.iloc[features.rows]
    e = np.exp(features.f_ND.astype(np.float64))
    p = e / e.sum(1, keepdims=True)
    frame = rows[["sketch_id", *KEY, "image_id"]].rename(columns={"sketch_id": "sketch"})
    frame["label"] = [data.labels[i] for i in p.argmax(1)]
    return frame.assign(p=list(p), order=1)


def neighbours(data, concept) -> dict[str, int]:
    """Label → position among the other labels by cosine distance, from 0."""
    space, c = data.semantic_space, data.labels.index(concept)
    distance = [(cosine(space[c], space[i]), i) for i in range(len(data.labels)) if i != c]
    return {data.labels[i]: position for position, (_, i) in enumerate(sorted(distance))}


def naive_snp(data, concept, answers, variant, none_value) -> float:
    if len(answers) == 0:
        return np.nan
    position_of = neighbours(data, concept)
    position = np.array([position_of[a] for a in answers if a != concept], float)
    if variant == "exact":
        return 1 - position.mean() / (len(data.labels) - 2) if len(position) else none_value
    position = position[position != 0]
    if len(position) == 0:
        return none_value
    observed = np.unique(position)
    share = [np.mean(position <= x) for x in observed]
    return auc([*observed / len(data.labels), 1.0], [*share, 1.0])


def chao_shen(n) -> float:
    n = np.asarray(n, float)
    total, single = n.sum(), (n == 1).sum()
    if total == 1:
        return 0.0
    coverage = 1 - (single if single < total else total - 1) / total
    p = coverage * n / total
    return float(sum(-x * np.log(x) / (1 - (1 - x) ** total) for x in p if x < 1))


def counts(labels) -> np.ndarray:
    return pd.Series(list(labels)).value_counts().to_numpy()


def people_cell(data, concept, cell, preset) -> tuple[float, float, float]:
    first = cell[cell["order"] == 1]
    if preset == "paper_text":
        return (
            (cell["label"] == concept).mean(),
            scipy_entropy(counts(cell["label"])),
            naive_snp(data, concept, cell["label"], "exact", np.nan),
        )
    accuracy = first.groupby("sketch")["label"].apply(lambda x: (x == concept).mean()).mean()
    estimate = scipy_entropy if preset == "paper_code" else chao_shen
    h = np.mean([estimate(counts(labels)) for _, labels in cell.groupby("sketch")["label"]])
    variant, none_value = ("paper", 1.0) if preset == "paper_code" else ("exact", np.nan)
    return accuracy, h, naive_snp(data, concept, first["label"], variant, none_value)


def model_cell(data, concept, cell, preset) -> tuple[float, float, float]:
    accuracy = (cell["label"] == concept).mean()
    pooled = preset == "paper_text"
    h = scipy_entropy(counts(cell["label"])) if pooled else np.mean([scipy_entropy(p) for p in cell["p"]])
    variant, none_value = ("paper", 1.0) if preset == "paper_code" else ("exact", np.nan)
    return accuracy, h, naive_snp(data, concept, cell["label"], variant, none_value)


def naive_cells(data, model, people, preset) -> pd.DataFrame:
    """Cell metrics of both sides, indexed by (concept, condition)."""
    sides = {"": (model, model_cell), "_people": (people, people_cell)}
    columns = {}
    for suffix, (table, of_cell) in sides.items():
        rows = {key: of_cell(data, key[0], cell, preset) for key, cell in table.groupby(KEY)}
        for i, metric in enumerate(METRICS):
            columns[metric + suffix] = pd.Series({key: row[i] for key, row in rows.items()})
    return pd.DataFrame(columns)


def adjusted_r2(y, *columns) -> float:
    x = np.column_stack([np.ones(len(y)), *columns])
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    r2 = 1 - residual @ residual / np.sum((y - y.mean()) ** 2)
    return 1 - (1 - r2) * (len(y) - 1) / (len(y) - x.shape[1])


def naive_alignment(cells, metric) -> tuple[float, float]:
    both = cells[[metric, metric + "_people"]].dropna()
    m, y = both[metric].to_numpy(), both[metric + "_people"].to_numpy()
    t = both.index.get_level_values(1).to_numpy(float)
    factor = [(t == level).astype(float) for level in np.unique(t)[1:]]
    alone = adjusted_r2(y, *factor)
    return adjusted_r2(y, m, t, m * t), adjusted_r2(y, *factor, m, m * t) - alone


def resampled(table, weight_of) -> pd.DataFrame:
    """The table with every image taken as often as its weight, copies being sketches of their own."""
    parts = []
    for (concept, image), rows in table.groupby(["concept", "image_id"]):
        for copy in range(int(weight_of[concept, image])):
            parts.append(rows.assign(sketch=rows["sketch"] + f"#{copy}"))
    return pd.concat(parts)


def run(study, readout, **kwargs):
    data, features = study
    kwargs = {"replicates": 20, "splits": 4, **kwargs}
    return SevaBenchmark(**kwargs).run(data, features, readout, seed=3)


@pytest.mark.parametrize("preset", ["paper_text", "paper_code", "corrected"])
def test_cells_equal_the_naive_port(study, readout, preset):
    data, features = study
    result = run(study, readout, protocol=preset)
    expected = naive_cells(data, long_model(data, features), long_answers(data), preset)
    cells = result.cells.set_index(KEY)
    assert len(cells) == len(expected) == 32
    for column in expected.columns:
        np.testing.assert_allclose(cells[column].reindex(expected.index), expected[column], atol=1e-6, err_msg=column)
    for metric in METRICS:
        assert result.scores[metric].value == pytest.approx(expected[metric].mean(), abs=1e-6)
        assert result.scores[metric + "_people"].value == pytest.approx(expected[metric + "_people"].mean(), abs=1e-6)


@pytest.mark.parametrize("preset", ["paper_text", "corrected"])
def test_alignment_of_the_full_sample_equals_the_naive_port(study, readout, preset):
    data, features = study
    result = run(study, readout, protocol=preset)
    expected = naive_cells(data, long_model(data, features), long_answers(data), preset)
    for metric in METRICS:
        r2, delta = naive_alignment(expected, metric)
        assert result.scores[f"alignment_{metric}"].value == pytest.approx(r2, abs=1e-6)
        assert result.scores[f"delta_r2_{metric}"].value == pytest.approx(delta, abs=1e-6)


def test_alignment_of_the_published_code_is_the_mean_of_its_replicates(study, readout):
    data, features = study
    result = run(study, readout, protocol="paper_code", replicates=3)
    design = CellDesign.from_columns(data.target_N, data.table["image_id"], data.table["condition"])
    images = data.table.groupby("concept")["image_id"].unique().map(sorted)
    concepts = [data.labels[i] for i in design.concepts_K]
    replicates = []
    for weights_KJ in image_weights(design, 3, seed=3):
        weight_of = {
            (c, j): w for c, row in zip(concepts, weights_KJ, strict=True) for j, w in zip(images[c], row, strict=True)
        }
        model, people = (resampled(t, weight_of) for t in (long_model(data, features), long_answers(data)))
        cells = naive_cells(data, model, people, "paper_code")
        replicates.append([naive_alignment(cells, m)[0] for m in METRICS])
    for metric, values in zip(METRICS, np.transpose(replicates), strict=True):
        score = result.scores[f"alignment_{metric}"]
        assert score.value == pytest.approx(values.mean(), abs=1e-6)
        low, high = np.quantile(values, [0.025, 0.975])
        assert (score.ci_low, score.ci_high) == pytest.approx((low, high), abs=1e-6)


def test_jensen_shannon_distance_of_cells_equals_scipy(study, readout):
    data, features = study
    cells = run(study, readout).cells.set_index(KEY)
    model, people = long_model(data, features), long_answers(data)
    for key, cell in model.groupby(KEY):
        theirs = people[(people["concept"] == key[0]) & (people["condition"] == key[1])]["label"]
        p, q = (pd.Series(list(x)).value_counts().reindex(data.labels).fillna(0) for x in (cell["label"], theirs))
        assert cells["jsd"][key] == pytest.approx(jensenshannon(p, q), abs=1e-9)


def test_error_consistency_equals_cohens_kappa_of_correctness(study, readout):
    data, features = study
    result = run(study, readout)
    model = long_model(data, features).set_index("sketch")
    right = model["label"] == model["concept"]
    people = long_answers(data).query("order == 1").assign(right=lambda x: x["label"] == x["concept"])
    table = people.pivot_table(index="sketch", columns="participant", values="right", aggfunc="first")
    with_model = [cohen_kappa_score(right[col.dropna().index], col.dropna().astype(bool)) for _, col in table.items()]
    score = result.scores["error_consistency"]
    assert score.value == pytest.approx(np.mean(with_model), abs=1e-12)
    assert score.n == len(table.columns)
    pairs = []
    for i, a in enumerate(table.columns):
        for b in table.columns[:i]:
            both = table[[a, b]].dropna()
            pairs.append(cohen_kappa_score(both[a].astype(bool), both[b].astype(bool)))
    assert score.ceiling == pytest.approx(np.mean(pairs), abs=1e-12)


def test_ceiling_of_error_consistency_where_people_share_few_items(study, readout):
    data, features = study
    table = data.responses.table
    rows = np.random.default_rng(2).random(len(table)) < 0.15
    sparse = replace(data, responses=replace(data.responses, table=table[rows]))
    result = run((sparse, features), readout)
    first = long_answers(sparse).query("order == 1").assign(right=lambda x: x["label"] == x["concept"])
    each = []
    for person, own in first.groupby("participant"):
        pairs = own.merge(first[first["participant"] != person], on="sketch")
        each.append(cohen_kappa_score(pairs["right_x"], pairs["right_y"]))
    assert result.details["error_consistency"]["common_items_median"] < 10
    assert result.details["error_consistency"]["ceiling_kind"] == "each_with_others"
    assert result.scores["error_consistency"].ceiling == pytest.approx(np.mean(each), abs=1e-12)
