import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from humanlike.backbones.network import NetworkBackbone
from humanlike.benchmarks.object_learning import ObjectLearningBenchmark
from humanlike.benchmarks.object_learning_conventions import CONVENTIONS, convention
from humanlike.benchmarks.object_learning_encoding import Encoding, encode
from humanlike.benchmarks.object_learning_sessions import ModelSessions, features_of
from humanlike.data.object_learning import (
    Condition,
    ImageSet,
    ObjectLearningData,
    PeopleConditions,
    PeopleCounts,
    SimulatedPeople,
)
from humanlike.learners import simulate_direct
from humanlike.metrics.functional import msen
from humanlike.reports.run_folder import digest

SIDE = 16
SETTINGS = {"layers": ["0", "2"], "rules": ["square", "hinge"], "sessions": 30, "replicates": 50, "size": SIDE}


class ObjectImages:
    """Seeded noise around a pattern of the object's own."""

    def __init__(self, objects):
        self.objects = list(objects)

    def __len__(self):
        return len(self.objects)

    def load(self, index):
        pattern = np.random.default_rng(list(self.objects[index].encode())).normal(128, 25, (SIDE, SIDE))
        noise = np.random.default_rng(index).normal(0, 60, (SIDE, SIDE))
        return Image.fromarray((pattern + noise).clip(0, 255).astype(np.uint8)).convert("RGB")

    def content_hash(self, index):
        return hashlib.sha256(f"{self.objects[index]}/{index}".encode()).hexdigest()

    def describe(self, index):
        return f"image {index} of {self.objects[index]}"


def network():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIDE * SIDE, 30), torch.nn.Tanh())


@pytest.fixture
def backbone():
    return NetworkBackbone(network, "2", {"size": SIDE}, name="tiny")


def images(objects, each, name):
    owner = [o for o in objects for _ in range(each)]
    table = pd.DataFrame({"image_id": [f"{o}{i:03d}" for i, o in enumerate(owner)], "category": owner})
    return ImageSet(name, table, ObjectImages(owner))


@pytest.fixture
def data():
    return ObjectLearningData(
        "patterns",
        "high_variation",
        (("a", "b"), ("c", "d"), ("e", "f")),
        images("abcdef", 100, "images"),
        images("wx", 20, "warm-up"),
        SimulatedPeople("tiny", "2", "square", lapse=0.1, sessions=30),
        simulated=True,
    )


def run(backbone, data, path, layer="2", seed=0, **settings):
    benchmark = ObjectLearningBenchmark(**{**SETTINGS, **settings})
    return benchmark.run_backbone(
        backbone, data, layer=layer, seed=seed, cache_dir=path, extraction={"progress": False}
    )


def test_scores_are_those_of_counts_and_the_true_model_is_a_perfect_one(backbone, data, tmp_path):
    found = run(backbone, data, tmp_path)
    result, models = found.result, found.result.tables["models"]
    assert len(models) == 4
    curves = result.tables["subtask_curves"]
    k_ST = curves["correct"].to_numpy(copy=True).reshape(3, 100)
    people_ST = curves["accuracy_people"].to_numpy().reshape(3, 100)
    k_people_ST = np.rint(people_ST * 30).astype(int)
    expected = msen(k_ST, 30, k_people_ST, 30)
    assert result.scores["msen_paper"].value == pytest.approx(expected.value.item(), abs=1e-12)
    assert result.scores["lapse_rate"].value == pytest.approx(expected.lapse_rate.item(), abs=1e-12)
    assert result.scores["noise_floor"].value == pytest.approx(expected.noise_floor.item(), abs=1e-12)
    for name in CONVENTIONS:
        score = result.scores[f"msen_{name}"]
        assert score.ci_low < score.value < score.ci_high
    assert result.scores["p_null"].value > 0.05
    own = models.set_index(["layer", "rule"]).loc[("2", "square")]
    assert own["accuracy"] == pytest.approx(k_ST.mean() / 30)
    assert {"simulated_participants", "layer_fixed_beforehand:2"} <= set(result.flags)
    assert result.tables["replicates"].shape == (4, 5 + 50)
    assert set(result.tables["phases"]["phase"]) == {"early", "late", "all"}


def test_a_second_run_reads_what_is_finished_and_gives_the_same(backbone, data, tmp_path, monkeypatch):
    first = run(backbone, data, tmp_path)
    kept = sorted((tmp_path / "object_learning").glob("*.json"))
    assert len(kept) == 2
    kept[0].unlink()
    computed = []
    original = ModelSessions.simulate
    monkeypatch.setattr(ModelSessions, "simulate", lambda self, *given: (computed.append(1), original(self, *given))[1])
    again = run(backbone, data, tmp_path)
    assert len(computed) == 3 + 1  # three simulations of the lost layer, and the sessions of the reference
    for name, table in first.result.tables.items():
        pd.testing.assert_frame_equal(table, again.result.tables[name])
    assert digest(first.result.items, first.result.counts) == digest(again.result.items, again.result.counts)


def test_any_session_can_be_recomputed_alone_and_equals_the_direct_simulation(data):
    x_ND = np.random.default_rng(0).normal(size=(200, 40)) / 8
    x_ND /= np.maximum(np.linalg.norm(x_ND, axis=1, keepdims=True), 1)
    sessions = ModelSessions(data, 12, 3, ["square", "exponential"])
    simulation = convention("paper").simulation
    together = sessions.simulate([x_ND @ x_ND.T] * 3, simulation)
    alone = ModelSessions(data, 5, 3, ["square", "exponential"]).one_session(1, 9, x_ND @ x_ND.T, simulation)
    np.testing.assert_array_equal(alone, together[1][:, 9])
    draws = sessions.draws(1, "permutation")
    for rule, own in zip(sessions.names, together[1], strict=True):
        direct = simulate_direct(x_ND, draws.order_ST, draws.correct_action_ST, draws.coins_ST, rule)
        np.testing.assert_array_equal(own, direct == draws.correct_action_ST)


def test_any_session_of_a_run_can_be_recomputed_alone_from_its_address(backbone, data, tmp_path):
    items = run(backbone, data, tmp_path, seed=5, rule="hinge").result.items.set_index("session_id")
    encoding = Encoding(["2"], size=SIDE)
    encoded = encode(backbone, data, encoding, seed=5, cache_dir=tmp_path / "alone", extraction={"progress": False})
    simulation = convention("paper").simulation
    grams = encoded.read("2").calibrated(simulation.norm_quantile)
    for address in ("c,d:17", "e,f:0", "e,f:29"):
        name, session = address.split(":")
        subtask = data.subtask_names.index(name)
        alone_RT = ModelSessions(data, 2, 5, ["hinge"]).one_session(subtask, int(session), grams[subtask], simulation)
        choices = hashlib.sha256(np.packbits(alone_RT[0]).tobytes()).digest()[:8]
        assert int.from_bytes(choices, "little") >> 1 == items.loc[address, "trials_hash"]
        assert alone_RT[0].sum() == items.loc[address, "correct"]


def test_sessions_are_drawn_once_in_a_process(data):
    one, other = (ModelSessions(data, 12, 3, rules) for rules in (["square"], ["hinge", "mae"]))
    assert one.draws(1, "permutation") is other.draws(1, "permutation")
    assert ModelSessions(data, 12, 4, ["square"]).draws(1, "permutation") is not one.draws(1, "permutation")
    x_ND = np.random.default_rng(0).normal(size=(200, 40)) / 8
    grams, simulation = [x_ND @ x_ND.T] * 3, convention("paper").simulation
    together, alone = other.simulate(grams, simulation), other.only("mae").simulate(grams, simulation)
    for table_RST, own_1ST in zip(together, alone, strict=True):
        np.testing.assert_array_equal(table_RST[1:], own_1ST)


class Guesser:
    """A learner of the user's own."""

    def reset(self, seed):
        self.random = np.random.default_rng(seed)

    def respond(self, x_D):
        return int(self.random.integers(2))

    def give_feedback(self, reward):
        assert reward in (-1.0, 1.0)


def test_counts_of_people_and_a_learner_of_the_users_own(backbone, data, tmp_path):
    counts = PeopleCounts(np.full((3, 100), 20), np.full(3, 25))
    found = run(backbone, replace(data, people=counts, simulated=False), tmp_path, learners={"guesser": Guesser()})
    models = found.result.tables["models"].set_index(["layer", "rule"])
    guess = models.loc[("2", "guesser")]
    assert guess["accuracy"] == pytest.approx(0.5, abs=0.02)
    assert guess["msen_paper"] == pytest.approx(guess["random_guess_paper"], abs=0.01)
    assert guess["random_guess_paper"] == pytest.approx(0.09)
    assert "within_session_correlation_ignored" in found.result.flags


def test_without_people_only_behaviour_is_reported(backbone, data, tmp_path):
    found = run(backbone, replace(data, people=None, simulated=False), tmp_path)
    assert found.result.scores["msen_paper"].value is None
    assert found.result.scores["accuracy"].value > 0.5
    assert "no_people" in found.result.flags


def one_shot_data(people):
    owner = [o for o in "abcd" for _ in range(17)]
    kind = (["original"] + ["blur"] * 8 + ["noise"] * 8) * 4
    table = pd.DataFrame(
        {
            "image_id": [f"{o}{i:03d}" for i, o in enumerate(owner)],
            "category": owner,
            "transformation": kind,
            "condition": [{"original": -1, "blur": 0, "noise": 1}[k] for k in kind],
        }
    )
    return ObjectLearningData(
        "one view",
        "one_shot",
        (("a", "b"), ("c", "d")),
        ImageSet("images", table, ObjectImages(owner)),
        images("wx", 20, "warm-up"),
        people,
        (Condition("blur", 2.0), Condition("noise", 0.5)),
        simulated=isinstance(people, SimulatedPeople),
    )


@pytest.mark.parametrize(
    "people",
    [
        SimulatedPeople("tiny", "2", "square", lapse=0.05, sessions=40),
        PeopleConditions(np.array([0.7, 0.8]), np.array([0.02, 0.02]), digitised=True),
    ],
)
def test_one_shot_scores_are_the_mean_over_conditions(backbone, tmp_path, people):
    found = run(backbone, one_shot_data(people), tmp_path, sessions=60)
    table = found.result.tables["one_shot"].set_index(["layer", "rule"]).loc[("2", "square")]
    error = (table["accuracy"] - table["accuracy_people"]) ** 2 - table["std_error"] ** 2
    assert found.result.scores["msen_paper"].value == pytest.approx(error.mean(), abs=1e-12)
    assert found.result.tables["models"]["experiment"].eq("one_shot").all()
    known = isinstance(people, SimulatedPeople)
    assert (found.result.scores["p_null"].value is not None) == known
    assert ("people_digitised" in found.result.flags) != known


def test_wrong_use_is_a_sentence(backbone, data, tmp_path):
    for wrong, text in (
        ({"rules": ["sqare"]}, "unknown update rule"),
        ({"rule": "mae"}, "not among the rules"),
        ({"convention": "v3"}, "did you mean 'v2'"),
        ({"sessions": 1}, "needs 2 or more"),
        ({"alpha": 2}, "alpha must lie"),
    ):
        with pytest.raises(ValueError, match=text):
            ObjectLearningBenchmark(**{**SETTINGS, **wrong})
    with pytest.raises(ValueError, match="people_backbone"):
        run(backbone, replace(data, people=SimulatedPeople("another", "2")), tmp_path)
    with pytest.raises(TypeError, match="dataset=novel_objects"):
        run(backbone, None, tmp_path)


def test_a_convention_that_needs_more_images_is_left_out_or_refused(backbone, data, tmp_path):
    few = replace(data, images=images("abcdef", 60, "images"))
    found = run(backbone, few, tmp_path)
    assert "convention_needs_more_images:paper_text" in found.result.flags
    assert found.result.scores["msen_paper_text"].value is None
    assert found.result.scores["msen_v2"].value < found.result.scores["msen_paper"].value
    with pytest.raises(ValueError, match="some objects have fewer; use convention=paper"):
        run(backbone, few, tmp_path, convention="paper_text")


def test_the_convention_is_the_protocol_and_compat_is_said(backbone, tmp_path):
    data = one_shot_data(SimulatedPeople("tiny", "2", "square", lapse=0.05, sessions=40))
    sound = run(backbone, data, tmp_path, sessions=60)
    fault = run(backbone, data, tmp_path, sessions=60, compat=True)
    assert (sound.result.protocol["preset"], sound.result.protocol["overridden"]) == ("paper", [])
    assert fault.result.protocol["overridden"] == ["compat"]
    assert "catch_rate_of_last_sessions_only" in fault.result.flags
    for name in ("msen_paper", "msen_paper_text"):
        assert fault.result.scores[name] == sound.result.scores[name]
    # Two subtasks, the same forty people: the last sessions are those of the second subtask.
    rate = {r: x.result.tables["models"]["lapse_rate_people_v2"].iloc[0] for r, x in (("all", sound), ("last", fault))}
    assert rate["last"] != rate["all"]
    kinds = sound.result.tables["one_shot_kinds"].set_index(["layer", "rule"]).loc[("2", "square")]
    assert kinds["transformation"].tolist() == ["blur", "noise"]
    np.testing.assert_allclose(kinds["difference"], kinds["accuracy"] - kinds["accuracy_people"])


def test_models_are_ranked_and_the_truth_and_single_people_are_told(backbone, data, tmp_path):
    found = run(backbone, data, tmp_path)
    tables, facts = found.result.tables, found.result.details["object_learning"]
    assert tables["rank_groups"]["rank"].min() == 1
    assert facts["truth"]["layer_is_best"]
    assert facts["truth"]["rule_in_top_group"]
    best = tables["rank_groups"].iloc[0]
    assert facts["truth"]["top_group"][0] == f"{best['layer']}/{best['rule']}"
    assert tables["individuals"]["n_subtasks"].eq(3).all()
    assert facts["individuals"]["did_all"] == 30
    assert any("top rank group" in note for note in found.result.details["notes"])
    own = tables["subtasks"].query("layer == '2' and rule == 'square'").set_index("subtask")["accuracy"]
    curves = tables["subtask_curves"].groupby("subtask")["accuracy"].mean()
    pd.testing.assert_series_equal(own.sort_index(), curves.sort_index(), check_names=False)


def test_features_of_a_gram_matrix():
    x_ND = np.random.default_rng(1).normal(size=(6, 3))
    back_NN = features_of(x_ND @ x_ND.T)
    np.testing.assert_allclose(back_NN @ back_NN.T, x_ND @ x_ND.T, atol=1e-12)
