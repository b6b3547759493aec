"""Text encoders and BERTScore on tiny models with random weights, against loops and against the model itself."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from humanlike.elements.bertscore import bertscore
from humanlike.elements.extraction_compare import compare_elements
from humanlike.elements.text_encoders import TransformerText

transformers = pytest.importorskip("transformers")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "wing", "beak", "eye", "tail", "of", "owl", "a", ",", "##s", "big"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny BERT with random weights."""
    path = tmp_path_factory.mktemp("models") / "tiny-bert"
    path.mkdir()
    transformers.BertTokenizer(vocab={word: i for i, word in enumerate(WORDS)}).save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    transformers.BertModel(config).save_pretrained(path)
    return path


TEXTS = ["wings, beak", "a big eye", "owl", "beak, wing"]


def by_hand(folder, text, layer=None):
    """Ids, vectors and special tokens of one text alone."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    ids = tokenizer(text)["input_ids"]
    with torch.no_grad():
        said = model(torch.tensor([ids]), output_hidden_states=True)
    vectors = said.last_hidden_state[0] if layer is None else said.hidden_states[layer][0]
    return ids, vectors.double().numpy(), [i in (WORDS.index("[CLS]"), WORDS.index("[SEP]")) for i in ids]


@pytest.mark.parametrize("layer", [None, 0, 1, -1])
def test_every_text_has_the_vectors_that_it_has_alone(folder, layer):
    found = TransformerText(folder, layer=layer).tokens(TEXTS)
    for text, tokens in zip(TEXTS, found, strict=True):
        ids, vectors, special = by_hand(folder, text, layer)
        assert tokens.ids_T.tolist() == ids
        assert WORDS.index("[UNK]") not in ids
        assert tokens.special_T.tolist() == special
        np.testing.assert_allclose(tokens.vectors_TD, vectors, atol=1e-6)


def test_pooling_and_prefix(folder):
    vectors = by_hand(folder, "owl a big eye")[1]
    wanted = {"mean": vectors.mean(0), "first": vectors[0], "last": vectors[-1]}
    for pooling, vector in wanted.items():
        found = TransformerText(folder, pooling=pooling, prefix="owl ").embed(["a big eye", "beak"])
        np.testing.assert_allclose(found[0], vector, atol=1e-6)


def test_a_sentence_encoder_says_itself_how_it_pools(folder, tmp_path):
    import shutil

    own = tmp_path / "sentences"
    shutil.copytree(folder, own)
    (own / "1_Pooling").mkdir()
    said = {"word_embedding_dimension": 16, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (own / "1_Pooling" / "config.json").write_text(json.dumps(said))
    assert TransformerText(own).pooling == "first"
    assert TransformerText(own, pooling="mean").pooling == "mean"
    (own / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(ValueError, match="pooling_mode_max_tokens"):
        TransformerText(own)
    (own / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(ValueError, match="'Dense' after its tokens"):
        TransformerText(own)


def test_source_names_model_content_and_reading(folder):
    one = TransformerText(folder)
    assert one.source.startswith("tiny-bert@files:")
    assert one.source.endswith("last layer, mean of tokens")
    assert TransformerText(folder, layer=1, prefix="q: ").source.endswith("layer 1, mean of tokens, prefix 'q: '")


def test_what_cannot_be_read_is_said(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"text encoder 'no/such' is not on this machine.*hf download"):
        TransformerText("no/such", offline=True)
    with pytest.raises(FileNotFoundError, match=r"no file .*absent\.gguf"):
        TransformerText(tmp_path / "absent.gguf")
    with pytest.raises(ValueError, match="pooling mean, first, last"):
        TransformerText(folder, pooling="max")
    with pytest.raises(ValueError, match=r"has the layers 0 … 2, not 7"):
        TransformerText(folder, layer=7).embed(["owl"])
    with pytest.raises(ValueError, match="no texts"):
        TransformerText(folder).embed([])


def definition(folder, candidates, references, idf):
    """BERTScore as the package bert-score computes it, token by token."""
    documents = [set(by_hand(folder, r)[0]) for r in references]

    def weight(token, special):
        if special:
            return 0.0
        return math.log((len(references) + 1) / (1 + sum(token in d for d in documents))) if idf else 1.0

    def one_way(x, y):
        total = norm = 0.0
        for token, vector, special in zip(*x, strict=True):
            best = max(
                float(np.dot(vector, other) / (np.linalg.norm(vector) * np.linalg.norm(other))) for other in y[1]
            )
            total += weight(token, special) * best
            norm += weight(token, special)
        return total / norm

    for candidate, reference in zip(candidates, references, strict=True):
        c, r = by_hand(folder, candidate), by_hand(folder, reference)
        p, q = one_way(c, r), one_way(r, c)
        yield p, q, 2 * p * q / (p + q)


@pytest.mark.parametrize("idf", [False, True])
def test_bertscore_is_that_of_its_definition(folder, idf):
    candidates, references = ["wings, beak", "a big eye"], ["beak, tail", "eye of owl"]
    found = bertscore(candidates, references, TransformerText(folder).tokens, idf=idf)
    for scores, wanted in zip(found, definition(folder, candidates, references, idf), strict=True):
        assert [scores[k] for k in ("precision", "recall", "f1")] == pytest.approx(wanted, abs=1e-6)


def test_bertscore_of_a_text_with_itself_is_one_and_mistakes_are_said(folder):
    tokens = TransformerText(folder).tokens
    [same] = bertscore(["a big eye"], ["a big eye"], tokens)
    assert same == pytest.approx({"precision": 1, "recall": 1, "f1": 1})
    with pytest.raises(ValueError, match="pairs of texts; got 1 and 2"):
        bertscore(["owl"], ["owl", "eye"], tokens)
    with pytest.raises(ValueError, match="weighs anything"):
        bertscore(["owl"], ["owl"], tokens, idf=True)


def test_a_comparison_takes_both(folder):
    encoder = TransformerText(folder)
    a, b = {"owl": ["wing", "beak"]}, {"owl": ["beak", "tail"]}
    row = compare_elements(a, b, encoder.embed, tokens=encoder.tokens).table.iloc[0]
    wanted = next(definition(folder, ["wing, beak"], ["beak, tail"], False))
    assert [row[f"bertscore_{k}"] for k in ("precision", "recall", "f1")] == pytest.approx(wanted, abs=1e-6)
    assert row["soft_f1"] < 1
