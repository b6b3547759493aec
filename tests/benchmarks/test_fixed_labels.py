"""Fixed labels against scikit-learn, scipy and plain loops; laws; what is missing stays missing."""

import inspect
import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy
from sklearn.metrics import cohen_kappa_score

from humanlike.backbones.recorded import RECORDED
from humanlike.benchmarks.fixed_labels import FixedLabelsBenchmark
from humanlike.entry.api import evaluate
from humanlike.files import json_ready
from humanlike.interfaces import Benchmark
from humanlike.readouts import LogisticReadout
from humanlike.readouts.imagenet_head import ImageNetHead
from humanlike.reports.run_folder import read_run
from humanlike.types import GUESS_COLUMNS, Responses

SCORES = {
    *("accuracy", "accuracy_people", "accuracy_difference", "observed_consistency", "error_consistency"),
    *("entropy", "entropy_people", "jsd", "jsd_people"),
}


def fixed(**kwargs) -> FixedLabelsBenchmark:
    return FixedLabelsBenchmark(**{"replicates": 8, **kwargs})


def values(result) -> dict[str, float | None]:
    return {name: score.value for name, score in result.scores.items()}


def softmax(f_ND):
    e = np.exp(f_ND.astype(float) - f_ND.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.fixture(scope="module")
def one_answer(study):
    """The made-up study with one answer a person and item, some of them missing."""
    data, features = study
    table = data.responses.table.assign(**dict.fromkeys(GUESS_COLUMNS[1:]))
    missing = np.random.default_rng(3).random(len(table)) < 0.1
    table["guess_1"] = table["guess_1"].where(~missing, "na")
    return replace(data, responses=Responses(table, simulated=True)), features


@pytest.fixture(scope="module")
def people(one_answer):
    """Person → item → answer, by plain loops over the table."""
    table = one_answer[0].responses.table
    answers: dict[str, dict[str, str]] = {}
    for row in table.itertuples():
        answers.setdefault(row.participant, {})[row.sketch_id] = row.guess_1
    return answers


def test_scores_equal_scikit_learn_and_scipy(one_answer, people, readout):
    data, features = one_answer
    result = fixed(people_entropy="pooled").run(data, features, readout)
    assert isinstance(fixed(), Benchmark)
    assert set(result.scores) == SCORES
    p_NL = softmax(features.f_ND)
    ids, truth = (
        data.table["sketch_id"].tolist(),
        dict(zip(data.table["sketch_id"], data.table["concept"], strict=True)),
    )
    time = dict(zip(data.table["sketch_id"], data.table["condition"], strict=True))
    said = dict(zip(ids, np.array(data.labels)[p_NL.argmax(1)], strict=True))
    right = {i: said[i] == truth[i] for i in ids}
    of_person = {p: {i: a == truth[i] for i, a in answers.items()} for p, answers in people.items()}

    assert values(result)["accuracy"] == pytest.approx(np.mean(list(right.values())))
    assert values(result)["accuracy_people"] == pytest.approx(
        np.mean([np.mean(list(r.values())) for r in of_person.values()])
    )
    difference = np.mean([np.mean([right[i] - float(r[i]) for i in r]) for r in of_person.values()])
    assert values(result)["accuracy_difference"] == pytest.approx(difference)

    def kappa(a, b):
        by_time = {}
        for t in sorted(set(time.values())):
            common = [i for i in a if i in b and time[i] == t]
            by_time[t] = cohen_kappa_score([a[i] for i in common], [b[i] for i in common])
        return by_time

    def observed(a, b):
        return [np.mean([a[i] == b[i] for i in a if i in b and time[i] == t]) for t in sorted(set(time.values()))]

    with_model = pd.DataFrame([kappa(right, r) for r in of_person.values()])
    among = pd.DataFrame([kappa(a, b) for a, b in combinations(of_person.values(), 2)])
    score = result.scores["error_consistency"]
    assert (score.value, score.ceiling) == pytest.approx((with_model.mean().mean(), among.mean().mean()))
    np.testing.assert_allclose(result.conditions["error_consistency"], with_model.mean())
    np.testing.assert_allclose(result.conditions["error_consistency_sem"], with_model.sem())
    np.testing.assert_allclose(result.conditions["error_consistency_people"], among.mean())
    score = result.scores["observed_consistency"]
    assert score.value == pytest.approx(np.mean([observed(right, r) for r in of_person.values()]))
    assert score.ceiling == pytest.approx(np.mean([observed(a, b) for a, b in combinations(of_person.values(), 2)]))

    items = result.items.set_index("sketch_id")
    for row, item in enumerate(ids):
        given = [a[item] for a in people.values() if a.get(item, "na") != "na"]
        counts = np.array([given.count(label) for label in data.labels], float)
        expected = (entropy(p_NL[row]), entropy(counts), jensenshannon(p_NL[row], counts))
        assert tuple(items.loc[item, ["entropy", "entropy_people", "jsd"]]) == pytest.approx(expected, nan_ok=True)
    for name in ("entropy", "entropy_people", "jsd"):
        assert values(result)[name] == pytest.approx(items[name].mean())


def test_tables_agree_with_each_other(one_answer, readout):
    data, features = one_answer
    result = fixed().run(data, features, readout)
    items, cells = result.items, result.cells.set_index(["concept", "condition"])
    assert items["sketch_id"].tolist() == data.table["sketch_id"].tolist()
    by_cell, by_condition = items.groupby(["concept", "condition"]), items.groupby("condition")
    for name, column in (("correct", "accuracy"), ("entropy", "entropy"), ("jsd", "jsd"), ("jsd_people", "jsd_people")):
        np.testing.assert_allclose(by_cell[name].mean(), cells[column])
        np.testing.assert_allclose(by_condition[name].mean(), result.conditions[column])
        np.testing.assert_allclose(by_condition[name].sem(), result.conditions[f"{column}_sem"])
    assert (by_cell["n_responses_people"].sum() == cells["n_responses_people"]).all()
    assert result.counts["judgments_missing"] == items["n_missing_people"].sum() > 0
    assert f"people_answers_missing:{result.counts['judgments_missing']}" in result.flags
    assert "simulated_participants" in result.flags
    people = result.details["people"]
    assert values(result)["accuracy_people"] == pytest.approx(np.mean([p["accuracy"] for p in people.values()]))
    json.dumps(json_ready(result.details), allow_nan=False)


def test_order_of_items_and_answers_does_not_matter(one_answer, features_of, readout):
    data, features = one_answer
    order = np.random.default_rng(1).permutation(len(data))
    shuffled = replace(data.select(order), responses=replace(data.responses, table=data.responses.table.sample(frac=1)))
    one = fixed().run(data, features, readout)
    two = fixed().run(shuffled, features_of(features.f_ND[order]), readout)
    assert one.scores == two.scores
    pd.testing.assert_frame_equal(one.cells, two.cells)


def test_the_model_that_is_a_person_agrees_with_herself(one_answer, people):
    data, _ = one_answer
    person, answers = next(iter(people.items()))
    alone = data.responses.table[data.responses.table["participant"] == person]
    data = replace(data, responses=Responses(alone.reset_index(drop=True)))
    result = fixed().run(data, recorded(data, answers), None)
    assert result.scores["error_consistency"].value == pytest.approx(1)
    assert result.scores["observed_consistency"].value == 1
    assert result.scores["accuracy_difference"].value == 0
    assert result.scores["error_consistency"].ceiling is None
    assert {"one_participant", "recorded_answers"} <= set(result.flags)
    assert result.scores["entropy"].value is None
    said = result.items.set_index("sketch_id")["top1"].dropna()
    assert said.to_dict() == {i: a for i, a in answers.items() if a != "na"}
    silent = sum(a == "na" for a in answers.values())
    assert result.counts["answers_missing"] == silent
    assert result.counts["items_without_trial"] == len(data) - len(answers)
    assert result.counts["items_failed"] == 0


def recorded(data, answers):
    from humanlike.types import Features

    ids = data.table["sketch_id"].tolist()
    rows = np.array([n for n, i in enumerate(ids) if i in answers])
    f_ND = np.array([[answers[ids[n]] == label for label in data.labels] for n in rows], np.float32)
    return Features(f_ND, rows, {}, RECORDED, {})


def test_intervals_hold_the_estimate_and_follow_the_seed(one_answer, readout):
    data, features = one_answer
    result = fixed(replicates=40).run(data, features, readout, seed=1)
    for name in SCORES - {"jsd_people"}:
        score = result.scores[name]
        assert score.ci_low < score.value < score.ci_high, name
    low, high = result.scores["error_consistency"].ceiling_ci
    assert low < result.scores["error_consistency"].ceiling < high
    assert fixed(replicates=40).run(data, features, readout, seed=1).scores == result.scores
    other = fixed(replicates=40).run(data, features, readout, seed=2)
    assert values(other)["error_consistency"] == values(result)["error_consistency"]
    assert other.scores["accuracy"].ci_low != result.scores["accuracy"].ci_low


def test_the_interval_over_people_has_the_width_of_its_standard_error(one_answer, readout):
    """With everyone seeing much, the spread over people and images is near the sum of both sampling variances."""
    data, features = one_answer
    result = fixed(replicates=300).run(data, features, readout)
    score, per_person = result.scores["accuracy_people"], result.details["people"]
    over_people = np.var([p["accuracy"] for p in per_person.values()], ddof=1) / len(per_person)
    by_item = (
        result.items.assign(image=result.items["image_id"]).groupby(["concept", "image"])["accuracy_people"].mean()
    )
    over_images = by_item.groupby("concept").var().mean() / len(by_item)
    width = 2 * 1.96 * np.sqrt(over_people + over_images)
    assert score.ci_high - score.ci_low == pytest.approx(width, rel=0.25)


def test_without_people_nothing_is_invented(one_answer, readout, without):
    data, features = one_answer
    result = fixed().run(without(data, responses=None), features, readout)
    assert set(result.scores) == SCORES
    known = {name for name, value in values(result).items() if value is not None}
    assert known == {"accuracy", "entropy"}
    assert "no_people" in result.flags
    assert result.conditions.filter(like="_people").isna().all(axis=None)


def test_imagenet_head_takes_the_order_of_the_labels(study, features_of):
    data, _ = study
    target = data.target_N
    scores = np.zeros((len(data), 1000), np.float32)
    scores[np.arange(len(data)), 10 * target] = 9.0
    head = ImageNetHead({label: [10 * i, 10 * i + 1] for i, label in reversed(list(enumerate(data.labels)))})
    result = fixed(replicates=2).run(data, features_of(scores), head)
    assert values(result)["accuracy"] == 1
    assert result.details["readout"]["categories"] == len(data.labels)


def test_a_trained_readout_keeps_images_in_one_fold(one_answer):
    data, features = one_answer
    result = fixed(replicates=2).run(data, features, LogisticReadout(n_splits=3))
    assert (result.items.groupby("image_id")["fold"].nunique() == 1).all()


def test_failed_images_are_named_and_left_out(one_answer, readout, features_of):
    data, features = one_answer
    result = fixed().run(data, features_of(features.f_ND, failed=[3]), readout)
    assert result.items["error"].iloc[3] == "item 3: truncated"
    assert (result.counts["items_used"], result.counts["items_failed"]) == (len(data) - 1, 1)
    assert "images_failed:1" in result.flags


def test_wrong_use_is_answered_in_a_sentence(one_answer, readout):
    data, features = one_answer
    with pytest.raises(ValueError, match="replicates is 1"):
        fixed(replicates=1)
    with pytest.raises(ValueError, match="people_entropy is 'plugin'"):
        fixed(people_entropy="plugin")
    with pytest.raises(ValueError, match="on_unknown is 'skip'"):
        fixed(on_unknown="skip")
    table = data.responses.table.copy()
    table.loc[5, "guess_1"] = "Label_03"
    odd = replace(data, responses=Responses(table))
    with pytest.raises(ValueError, match=r"not labels, first 'Label_03' in row 5"):
        fixed().run(odd, features, readout)
    result = fixed(on_unknown="drop").run(odd, features, readout)
    assert result.counts["guesses_outside_the_labels"] == 1


def test_recorded_answers_are_scored_and_reported_without_images(tmp_path):
    columns = ["subj", "imagename", "category", "object_response"]
    stimuli = [(f"0_{c}_00_{c}{i}.png", c) for c in ("cat", "dog") for i in range(4)]
    other = {"cat": "dog", "dog": "cat"}
    rows = [
        (f"p{p}", f"{n:04d}_x_s{p}_{name}", c, other[c] if (n + p) % 3 == 0 else c)
        for p in range(3)
        for n, (name, c) in enumerate(stimuli)
    ]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame([("net", name, c, "cat") for name, c in stimuli], columns=columns).to_csv(
        tmp_path / "cats_only.csv", index=False
    )
    score = evaluate(
        "recorded",
        "fixed_labels",
        "trials",
        dataset__root=str(tmp_path / "people.csv"),
        backbone__path=str(tmp_path / "cats_only.csv"),
        benchmark__replicates=4,
        out_dir=tmp_path / "run",
    )
    assert (score.backbone, score.dataset, score.layer) == ("cats_only", "people", RECORDED)
    assert score["accuracy"] == 0.5
    assert (tmp_path / "run" / "report.html").is_file()
    assert read_run(tmp_path / "run").scores == score.scores


def test_configuration_holds_the_keywords_with_their_defaults(repository):
    keys = yaml.safe_load((repository / "conf" / "benchmark" / "fixed_labels.yaml").read_text(encoding="utf-8"))
    del keys["defaults"], keys["_target_"]
    parameters = inspect.signature(FixedLabelsBenchmark).parameters
    assert keys == {name: p.default for name, p in parameters.items()}
