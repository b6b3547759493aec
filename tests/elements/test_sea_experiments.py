"""The named experiments of SEA, from their files to the score, against a chat server, on a tiny CommonSketch tree."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image, ImageDraw

from humanlike.elements.client_errors import CredentialError
from humanlike.entry.conf import compose
from humanlike.entry.evaluate import score_from_config
from humanlike.entry.targets import build

CLASSES = {
    "violin": {"superordinate": "instrument", "elements": ["body", "neck", "string"]},
    "owl": {"superordinate": "animal", "elements": ["eye", "beak", "wing", "claw"]},
    "cup": {"superordinate": "tableware", "elements": ["handle", "rim"]},
}
NAMED = {"violin": ["bodies", "neck", "bow"], "owl": ["eyes", "beak", "heart"], "cup": ["handle", "rim", "saucer"]}


@pytest.fixture
def tree(tmp_path):
    """Twelve sketches of three classes in the documented layout."""
    root, rng = tmp_path / "commonsketch", np.random.default_rng(0)
    root.mkdir()
    (root / "classes.json").write_text(json.dumps(CLASSES))
    lines = []
    for name, about in CLASSES.items():
        (root / name).mkdir()
        for i in range(4):
            image = Image.new("RGB", (64, 64), "white")
            ImageDraw.Draw(image).ellipse((8, 8, 20 + 8 * i, 40 + len(name)), outline="black", width=2)
            image.save(root / name / f"{i}.png")
            lines.append({"sketch_id": f"{name}-{i}", "class": name, "path": f"{name}/{i}.png", "caption": f"a {name}",
                          "present": [int(rng.random() < 0.7) for _ in about["elements"]]})  # fmt: skip
    (root / "annotations.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return root


def text_of(body):
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def answer(body):
    """Lists of parts, one of which lies inside, and verdicts that hang on the element's first letter."""
    text = text_of(body)
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    if set(properties) == {"elements"}:
        return json.dumps({"elements": next(parts for name, parts in NAMED.items() if name in text)})
    if "inside" in next(iter(properties.values()))["enum"]:
        return json.dumps({e: "inside" if e == "heart" else "visible" for e in properties})
    return json.dumps({e: "present" if e[0] < "n" else "absent" for e in properties})


def evaluated(config):
    """The score; connections of the clients are closed."""
    benchmark = build(config.benchmark)
    try:
        return score_from_config(config, benchmark=benchmark)[0]
    finally:
        benchmark.judge.client.close()
        if hasattr(benchmark.elements, "client"):
            benchmark.elements.client.close()


def composed(experiment, tree, server, tmp_path, *further):
    clients = [f"{place}.client.base_url={server.base_url}" for place in ("judge", "benchmark.elements")]
    return compose(
        "evaluate",
        [f"experiment={experiment}", f"dataset.root={tree}", "backbone=random_tiny", "readout=logistic",
         "readout.n_splits=2", *further, *clients, "benchmark.replicates=20", "benchmark.sensitivity_draws=0",
         f"paths.cache={tmp_path / 'cache'}", "extraction.num_workers=0"],
    )  # fmt: skip


@pytest.mark.parametrize("experiment", ["sea_closed", "opensea"])
def test_elements_and_judgments_come_from_models(experiment, tree, chat_server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    chat_server.answer = answer
    served = ["judge=endpoint", "judge.client.model=qwen2.5vl", "judge.client.credential_env=null"]
    config = composed(experiment, tree, chat_server, tmp_path, *(served if experiment == "opensea" else []))
    score = evaluated(config)
    concepts = score.result.tables["concepts"].set_index("concept")["elements"]
    assert concepts.to_dict() == {"violin": "body, neck, bow", "owl": "eye, beak", "cup": "handle, rim, saucer"}
    items = score.result.items.set_index("concept")["visual_ratio"]
    assert items.groupby(level=0).first().to_dict() == pytest.approx({"cup": 1 / 3, "owl": 1.0, "violin": 2 / 3})
    models = {body["model"] for _, _, body in chat_server.requests}
    expected = {"sea_closed": {"gpt-4o"}, "opensea": {"openai/gpt-oss-20b", "qwen2.5vl"}}
    assert models == expected[experiment]
    named = "gpt-4o" if experiment == "sea_closed" else "openai/gpt-oss-20b"
    assert score.result.details["elements"]["source"].startswith(f"extracted:{named}@")
    requests = len(chat_server.requests)
    assert requests == 3 * 5 + 3 + 12  # samples, the question about what lies inside, sketches
    again = evaluated(config)
    assert len(chat_server.requests) == requests
    assert again.digest == score.digest


def test_a_judge_is_calibrated_with_controls_in_the_same_request(tree, chat_server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    chat_server.answer = answer
    config = composed("sea_closed", tree, chat_server, tmp_path, "benchmark.calibration={controls: 2, replicates: 10}")
    config.benchmark.elements = "annotation"
    score = evaluated(config)
    assert len(chat_server.requests) == 12
    asked = [set(b["response_format"]["json_schema"]["schema"]["properties"]) for _, _, b in chat_server.requests]
    sizes = sorted(len(names) for names in asked)
    assert sizes == sorted(4 * [len(about["elements"]) + 2 for about in CLASSES.values()])
    rates = score.result.tables["calibration"].set_index("rate")
    assert rates.loc["specificity, controls", "n"] == 2 * 12
    assert score.result.items["num_elements"].max() == 4


def test_an_endpoint_is_held_against_the_annotation(tree, chat_server, tmp_path, monkeypatch):
    """`benchmark=element_vqa`, every number counted by hand from the files; a sketch that is refused is no answer."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    chat_server.answer = lambda body: "I cannot see that." if "cup" in text_of(body) else answer(body)
    config = compose(
        "evaluate",
        ["benchmark=element_vqa", "dataset=commonsketch", f"dataset.root={tree}", "backbone=random_tiny",
         "judge=endpoint", "judge.client.model=gpt-4o", f"judge.client.base_url={chat_server.base_url}",
         "benchmark.replicates=20", f"paths.cache={tmp_path / 'cache'}"],
    )  # fmt: skip
    benchmark = build(config.benchmark)
    score = score_from_config(config, benchmark=benchmark)[0]
    benchmark.judge.client.close()
    lines = [json.loads(line) for line in (tree / "annotations.jsonl").read_text().splitlines()]
    pairs = [(line["class"], e, bool(drawn)) for line in lines
             for e, drawn in zip(CLASSES[line["class"]]["elements"], line["present"], strict=True)]  # fmt: skip
    said = [(e[0] < "n", drawn) for concept, e, drawn in pairs if concept != "cup"]
    both, called, drawn = (sum(map(key, said)) for key in (all, lambda p: p[0], lambda p: p[1]))
    expected = {
        "precision": both / called,
        "recall": both / drawn,
        "f1": 2 * both / (called + drawn),
        "coverage": len(said) / len(pairs),
        "accuracy": sum(a == b for a, b in said) / len(said),
        "accuracy_over_all": sum(a == b for a, b in said) / len(pairs),
        "present_rate_bias": (called - drawn) / len(said),
    }
    for name, value in expected.items():
        assert score.scores[name].value == pytest.approx(value), name
    assert score.result.counts["pairs_unanswered"] == 4 * len(CLASSES["cup"]["elements"])
    assert "judgments_missing:8" in score.result.flags
    assert score.result.details["judge"]["source"].startswith("gpt-4o at an endpoint")
    (reason,) = score.result.details["judge"]["missing"]
    assert score.result.details["judge"]["missing"][reason] == 8
    cups = score.result.items[score.result.items["concept"] == "cup"]
    assert cups["visual_ratio"].isna().all()  # missing, never v = 0


@pytest.mark.parametrize("experiment", ["sea_closed"])
def test_without_a_key_nothing_is_asked(experiment, tree, chat_server, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = compose("evaluate", [f"experiment={experiment}", f"dataset.root={tree}", "backbone=random_tiny",
                                  f"paths.cache={tmp_path / 'cache'}"])  # fmt: skip
    with pytest.raises(CredentialError, match="OPENAI_API_KEY; nothing was sent"):
        score_from_config(config)
    assert chat_server.count == 0


def test_a_class_without_a_list_is_named(tree, chat_server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    chat_server.answer = lambda body: "I would rather not."
    with pytest.raises(ValueError, match=r"gpt-4o gave no list of elements for 3 of 3 concepts \(cup: 0 of 5 samples"):
        evaluated(composed("sea_closed", tree, chat_server, tmp_path))


def test_drawings_of_unseen_classes_by_time_limit(chat_server, tmp_path, monkeypatch):
    from humanlike.data.doodles import doodles

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    chat_server.answer = answer
    drawn = doodles(concepts=["mosquito", "tank"], instances=2, judgments=0, size=64)
    for i, row in enumerate(drawn.table.itertuples()):
        file = tmp_path / "drawings" / f"{row.condition:g}s" / row.concept / f"{row.image_id}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        drawn.images.load(i).save(file)
    config = compose(
        "evaluate",
        ["experiment=unseen_classes", f"dataset.root={tmp_path / 'drawings'}", "backbone=random_tiny",
         "readout=logistic", "readout.n_splits=2", f"judge.client.base_url={chat_server.base_url}",
         "benchmark.replicates=20", "benchmark.sensitivity_draws=0", f"paths.cache={tmp_path / 'cache'}",
         "extraction.num_workers=0"],
    )  # fmt: skip
    score = evaluated(config)
    assert score.dataset == "unseen_classes"
    assert score.result.conditions["condition"].tolist() == [4, 8, 16, 32]
    assert score.result.conditions["n_scored"].tolist() == [4, 4, 4, 4]
    assert score.result.details["chance"]["accuracy"] == pytest.approx(1 / 22)
    elements = score.result.tables["concepts"].set_index("concept")["elements"]
    assert "turret" in elements["tank"]
    assert "proboscis" in elements["mosquito"]
    items = score.result.items
    means = items.groupby("condition")["sea"].mean()
    np.testing.assert_allclose(score.result.conditions["sea"], means)
    wanted = elements["tank"].split(", ")
    expected = sum(e[0] < "n" for e in wanted) / len(wanted)
    np.testing.assert_allclose(items[items["concept"] == "tank"]["visual_ratio"], expected)
