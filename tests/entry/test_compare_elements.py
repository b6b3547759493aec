"""`humanlike compare-elements`: sources by name, the table, the record, and models of meaning that are tiny."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from humanlike.elements.lists import shipped
from humanlike.entry import cli
from humanlike.entry.compare_elements import source


@pytest.fixture
def compare(monkeypatch, capsys):
    """Runs the command; gives exit status, output and errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["humanlike", "compare-elements", *map(str, arguments)])
        try:
            cli.main()
        except SystemExit as left:
            return left.code, *capsys.readouterr()
        return 0, *capsys.readouterr()

    return run


@pytest.fixture
def files(tmp_path):
    """Three sources: a file, the folder of an extraction, a table of norms."""
    (tmp_path / "a.yaml").write_text("owl: [wing, beak]\ncar: [wheel, door]\ncup: [handle]\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "elements.yaml").write_text("concepts:\n  owl: [wings, beak, tail]\n  car: [wheel]\n")
    rows = [("gpt", "owl", "has wings", 9), ("gpt", "owl", "has a beak", 5), ("gpt", "owl", "has an eye", 1)]
    table = pd.DataFrame(rows, columns=["llm", "concept_id", "feature", "n_runs"]).assign(is_part=True)
    table.to_csv(tmp_path / "norms.csv.gz", index=False)
    return tmp_path / "a.yaml", tmp_path / "b", f"{tmp_path / 'norms.csv.gz'}#gpt"


def test_every_pair_with_intervals_in_print_and_on_disk(compare, files, tmp_path):
    status, said, _ = compare(*files, "--out", tmp_path / "out", "--replicates", 500)
    assert status == 0
    lines = [line.split(" | ") for line in said.splitlines()]
    assert lines[0] == ["A", "B", "concepts", "exact", "lemma", "noun"]
    assert [(row[0], row[1], row[2]) for row in lines[1:4]] == [
        ("a.yaml", "b", "2"), ("a.yaml", "gpt", "1"), ("b", "gpt", "1"),
    ]  # fmt: skip
    exact = [2 / 5, 2 / 3]  # owl: beak of 2 and 3; car: wheel of 2 and 1
    assert lines[1][3].startswith(f"{np.mean(exact):.3f} [")
    record = json.loads((tmp_path / "out" / "comparison.json").read_text())
    pair = record["pairs"][0]
    assert pair["means"]["exact_f1"]["mean"] == pytest.approx(np.mean(exact))
    assert pair["means"]["lemma_f1"]["mean"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert (pair["only_a"], pair["only_b"]) == (["cup"], [])
    assert pair["means"]["exact_f1"]["low"] == pytest.approx(exact[0], abs=0.02)  # both ends are drawn often
    assert record["published"] == {"soft_f1": 0.85, "clip_cosine": 0.941, "bertscore_f1": 0.813}
    table = pd.read_csv(tmp_path / "out" / "concepts.csv")
    assert table.groupby(["a", "b"]).size().tolist() == [2, 1, 1]
    means = pd.read_csv(tmp_path / "out" / "means.csv").set_index(["a", "b", "measure"])["mean"]
    assert means[str(files[1]), files[2], "lemma_recall"] == 1.0  # wings and beak, five runs or nine
    assert compare(*files, "--min-runs", 1, "--out", tmp_path / "out")[0] == 0
    means = pd.read_csv(tmp_path / "out" / "means.csv").set_index(["a", "b", "measure"])["mean"]
    assert means[str(files[1]), files[2], "lemma_recall"] == pytest.approx(2 / 3)


def test_sources_by_name():
    assert source("shipped") is shipped()
    annotated = source("annotation:doodles")
    assert annotated.source.startswith("annotation:doodles@")
    assert len(annotated) == 48


def test_wrong_use_is_said(compare, files):
    assert compare(files[0])[0] == 2
    status, _, error = compare(files[0], files[2].partition("#")[0])
    assert (status, "say whose" in error, "gpt" in error) == (1, True, True)
    status, _, error = compare(files[0], "absent.yaml")
    assert status == 1
    assert "no file of element lists at absent.yaml" in error
    status, _, error = compare(*files, "--out", files[0])
    assert status == 1
    assert "is a file; name a folder" in error
    status, _, error = compare(*files, "--clip", "ViT-B-32")
    assert status == 1
    assert "ARCHITECTURE:WEIGHTS" in error


def test_measures_of_meaning_name_their_models(compare, files, tmp_path):
    transformers = pytest.importorskip("transformers")
    import torch

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ",", "wing", "##s", "beak", "tail", "wheel", "door"]
    folder = tmp_path / "tiny"
    transformers.BertTokenizer(vocab={word: i for i, word in enumerate(words)}).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
    status, said, _ = compare(
        *files[:2], "--encoder", folder, "--bertscore", folder, "--layer", 0, "--idf", "--out", tmp_path / "out"
    )
    assert status == 0
    lines = said.splitlines()
    assert lines[0].endswith("exact | lemma | noun | soft | text cosine | BERTScore")
    assert lines[2] == "published: GPT-OSS 20B | GPT-4o | 300 | - | - | - | 0.850 | - | 0.813"
    assert "encoder: tiny@files:" in said
    record = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert record["bertscore"].endswith("layer 0, idf")
    from humanlike.elements.text_encoders import TransformerText

    vectors = TransformerText(folder).embed(["wing", "beak", "wings", "tail", "wheel", "door"])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    wing, beak, wings, tail, wheel, door = unit
    recall = [np.mean([max(x @ wing, x @ beak) for x in (wings, beak, tail)]), max(wheel @ wheel, wheel @ door)]
    assert record["pairs"][0]["means"]["soft_recall"]["mean"] == pytest.approx(np.mean(recall), abs=1e-6)


@pytest.mark.parametrize("name", ["extract", "compare-elements"])
def test_help_imports_nothing_heavy(name):
    """What makes `--help` answer within a second."""
    heavy = {"torch", "transformers", "pandas", "numpy", "hydra", "omegaconf", "httpx"}
    code = (
        f"import sys; sys.argv = ['humanlike', {name!r}, '--help']\n"
        "from humanlike.entry import cli\n"
        "try:\n    cli.main()\nexcept SystemExit as left:\n    assert left.code == 0\n"
        f"assert not {heavy!r} & set(sys.modules), {heavy!r} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"humanlike {name}" in done.stdout
