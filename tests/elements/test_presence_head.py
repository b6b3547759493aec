"""The presence head: gradients to the pixels, masked training, resumption, files, and verdicts on images."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from humanlike.backbones.callable import CallableBackbone
from humanlike.backbones.features import extract_features
from humanlike.data.doodles import doodles
from humanlike.elements.annotation import AnnotationJudge, annotated_elements
from humanlike.elements.grid import GridPool
from humanlike.elements.presence import DifferentiablePresence, PresenceJudge
from humanlike.elements.presence_file import load_presence_head, save_presence_head
from humanlike.elements.presence_fit import fit_presence
from humanlike.elements.presence_head import PresenceHead
from humanlike.elements.presence_judges import CrossFittedJudge, HeadJudge
from humanlike.entry.train_presence import train_presence
from humanlike.losses import SEALoss
from humanlike.metrics.functional.element_vqa import element_vqa_scores

TRAINER = {"accelerator": "cpu", "devices": 1, "enable_progress_bar": False}
CONCEPTS = ["lion", "taxi", "mouse"]


@pytest.fixture(scope="module")
def data():
    """60 small doodles, of which some annotations are empty."""
    data = doodles(CONCEPTS, instances=5, judgments=0, size=32)
    table = data.elements.assign(drawn=data.elements["drawn"].astype("boolean"))
    table.loc[np.random.default_rng(0).choice(len(table), 30, replace=False), "drawn"] = pd.NA
    return replace(data, elements=table)


@pytest.fixture(scope="module")
def backbone(smooth_backbone):
    return smooth_backbone


@pytest.fixture(scope="module")
def features(backbone, data):
    return extract_features(backbone, data, progress=False)["output"]


@pytest.fixture(scope="module")
def head(backbone, data, features):
    made = PresenceHead(
        6 * 4, annotated_elements(data), C=0.3, share=0.5, pool=GridPool((6, 4, 4), 2), backbone=backbone
    )
    return fit_presence(made, data, features, np.arange(40))


def test_pixels_get_the_gradient_that_finite_differences_say(head, backbone):
    assert isinstance(head, DifferentiablePresence)
    x = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1)).requires_grad_()
    logit, mask = head.presence_logits(x, ["taxi", "lion"])
    assert mask.sum(1).tolist() == [len(head.pairs["taxi"]), len(head.pairs["lion"])]
    assert (logit[~mask] == 0).all()
    SEALoss()(torch.tensor([-0.5, -1.0]), logit, mask).backward()
    assert x.grad.isfinite().all()
    assert (x.grad.flatten(1).norm(dim=1) > 0).all()
    assert all(p.grad is None for p in backbone.parameters())

    def total(image):
        return head.presence_logits(image, ["taxi", "lion"])[0].double().sum()

    (gradient,) = torch.autograd.grad(total(x), x)
    for seed in range(3):
        direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
        step = 1e-2 * direction
        with torch.no_grad():
            measured = float(total(x + step) - total(x - step)) / 2e-2
        assert float((gradient * direction).sum()) == pytest.approx(measured, rel=5e-3, abs=1e-3)


def test_images_and_features_give_the_same_logits(head, data, features):
    x = torch.stack([head.backbone.transform(data.images.load(i)) for i in range(0, 60, 20)])
    with torch.no_grad():
        from_pixels, _ = head.presence_logits(x, [data.table["concept"][i] for i in range(0, 60, 20)])
        from_features, _ = head(torch.from_numpy(features.f_ND[::20]), torch.tensor([0, 1, 2]))
    torch.testing.assert_close(from_pixels, from_features, rtol=1e-4, atol=1e-4)


def test_unknown_concepts_and_missing_backbones_are_named(head):
    with pytest.raises(ValueError, match=r"no elements of 'zebra'; it knows lion, mouse, taxi"):
        head.presence_logits(torch.zeros(1, 3, 32, 32), ["zebra"])
    with pytest.raises(ValueError, match="no backbone; give it one"):
        PresenceHead(3, {"lion": ["mane"]}).presence_logits(torch.zeros(1, 3, 8, 8), ["lion"])
    with pytest.raises(ValueError, match="C must be positive and share 0 or more"):
        PresenceHead(3, {"lion": ["mane"]}, share=-1)


@pytest.mark.parametrize(("shape", "side"), [((2, 4, 4), 2), ((4, 4, 2), 2), ((17, 2), 2), ((2, 3, 5), 1)])
def test_grids_are_means_of_cells(shape, side):
    a = torch.arange(float(np.prod(shape))).reshape(1, *shape)
    channels_first = a
    if shape == (4, 4, 2):
        channels_first = a.permute(0, 3, 1, 2)
    elif shape == (17, 2):
        channels_first = a[:, 1:].reshape(1, 4, 4, 2).permute(0, 3, 1, 2)
    got = GridPool(shape, side)(a.flatten(1)).reshape(2, side, side)
    height, width = channels_first.shape[2] // side, channels_first.shape[3] // side
    for c in range(2):
        for i in range(side):
            for j in range(side):
                cell = channels_first[0, c, i * height : (i + 1) * height, j * width : (j + 1) * width]
                assert got[c, i, j] == cell.mean()


def test_impossible_grids_are_refused(backbone):
    with pytest.raises(ValueError, match="no positions to pool"):
        GridPool((8,), 2)
    with pytest.raises(ValueError, match="4 × 4 positions; no grid of side 5"):
        GridPool((2, 4, 4), 5)
    assert GridPool.of(backbone, None, None) is None
    assert GridPool.of(backbone, "output", 1) is None
    with pytest.raises(ValueError, match="no layer 'deep'"):
        GridPool.of(backbone, "deep", 1)


def train(backbone, data, folder, **keywords):
    keywords = {"max_epochs": 4, "batch_size": 16, "precompute": False, "trainer_kwargs": TRAINER, **keywords}
    return train_presence(backbone, data, folder, **keywords)


def test_training_files_and_resumption(backbone, data, tmp_path):
    whole = train(backbone, data, tmp_path / "whole", share=0.5)
    assert json.loads((tmp_path / "whole" / "metrics.json").read_text()) == whole
    assert whole["num_train"] + whole["num_val"] == 60
    half = train(backbone, data, tmp_path / "parts", share=0.5, max_epochs=2)
    assert (half["epochs"], half["resumed"]) == (2, False)
    resumed = train(backbone, data, tmp_path / "parts", share=0.5)
    assert (resumed["epochs"], resumed["resumed"]) == (4, True)
    assert resumed["val_f1"] == whole["val_f1"]
    states = [torch.load(p / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"] for p in tmp_path.iterdir()]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not any("backbone" in name for name in states[0])
    with pytest.raises(ValueError, match=r"another presence head \(C: 0.01 there, 5.0 here\)"):
        train(backbone, data, tmp_path / "parts", share=0.5, C=5.0)
    # what was logged is what the saved head says about the held-out items
    judge = HeadJudge(load_presence_head(whole["head"], backbone))
    truth = AnnotationJudge().judge(data, annotated_elements(data))
    pairs = judge.judge(data, annotated_elements(data)).against(truth).dropna(subset="decision")
    said, drawn = (torch.tensor(pairs[c].astype(bool).to_numpy())[:, None] for c in ("decision", "annotated"))
    assert float(element_vqa_scores(said, drawn).f1) == pytest.approx(whole["val_f1"])
    assert pairs["sketch_id"].nunique() <= whole["num_val"]


@pytest.mark.slow
def test_both_solvers_go_to_one_optimum(backbone, data, tmp_path):
    sgd = partial(torch.optim.SGD, lr=2.0, momentum=0.9)
    options = {"batch_size": 60, "C": 0.1, "share": 0.0, "precompute": True, "cache_dir": tmp_path / "cache"}
    straight = train(backbone, data, tmp_path / "straight", solver="lbfgs", **options)
    slowly = train(backbone, data, tmp_path / "slowly", max_epochs=250, optimizer=sgd, **options)
    last = torch.load(slowly["checkpoint_last"], weights_only=True)["state_dict"]
    optimum = load_presence_head(straight["head"])
    torch.testing.assert_close(last["weight_PD"], optimum.weight_PD, atol=2e-3, rtol=0)
    torch.testing.assert_close(last["bias_P"], optimum.bias_P, atol=5e-3, rtol=0)
    assert straight["val_balanced_accuracy"] == pytest.approx(slowly["val_balanced_accuracy"], abs=0.05)


def test_wrong_settings_are_named(backbone, data, tmp_path):
    with pytest.raises(ValueError, match=r"val_fold must be one of the folds 0 … 4, got 5"):
        train(backbone, data, tmp_path, val_fold=5)
    with pytest.raises(ValueError, match="solver must be lbfgs or sgd, got 'adam'"):
        train(backbone, data, tmp_path, solver="adam")
    with pytest.raises(ValueError, match="has no annotation of elements"):
        train(backbone, replace(data, elements=None), tmp_path)


def test_a_saved_head_is_the_same_head(head, backbone, data, features, tmp_path):
    save_presence_head(tmp_path / "head.safetensors", head)
    again = load_presence_head(tmp_path / "head.safetensors", backbone)
    assert dict(again.pairs) == dict(head.pairs)
    x, k = torch.from_numpy(features.f_ND[:9]), torch.arange(9) % 3
    torch.testing.assert_close(again(x, k)[0], head(x, k)[0], rtol=1e-5, atol=1e-5)
    other = CallableBackbone(torch.nn.Flatten(), {"size": 32}, name="other")
    with pytest.raises(ValueError, match=r"was trained on smooth with weights .* but other has"):
        load_presence_head(tmp_path / "head.safetensors", other)
    wrong = replace(features, hashes={**features.hashes, "weights": "f" * 64})
    with pytest.raises(ValueError, match="the judge was made for"):
        HeadJudge(load_presence_head(tmp_path / "head.safetensors")).judge(data, annotated_elements(data), wrong)


def test_files_that_are_no_heads_are_refused(head, tmp_path):
    with pytest.raises(FileNotFoundError, match="task=presence"):
        load_presence_head(tmp_path / "none.safetensors")
    save_file({"x": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="no presence head: its schema is None"):
        load_presence_head(tmp_path / "other.safetensors")
    save_presence_head(tmp_path / "head.safetensors", head)
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "head.safetensors").read_bytes()[:-100])
    with pytest.raises(ValueError, match="no whole safetensors file"):
        load_presence_head(tmp_path / "cut.safetensors")
    with pytest.raises(ValueError, match="never fitted"):
        save_presence_head(tmp_path / "new.safetensors", PresenceHead(3, {"lion": ["mane"]}))


def test_a_head_does_not_judge_what_it_was_trained_on(head, data, features):
    elements = {**annotated_elements(data), "lion": ("mane", "wing")}
    judge = HeadJudge(head)
    assert isinstance(judge, PresenceJudge)
    presence = judge.judge(data, elements, features)
    seen = data.table["image_id"].isin(set(data.table["image_id"][:40])).to_numpy()
    ratio = presence.visual_ratio
    assert (ratio["num_judged"][seen] == 0).all()
    assert ratio["v"][seen].isna().all()
    assert (ratio["num_judged"][~seen] > 0).all()
    assert presence.missing["the head was trained on this source"] == int(ratio["num_elements"][seen].sum())
    everything = HeadJudge(head, on_seen="allow").judge(data, elements, features)
    assert set(everything.missing) == {"the head does not know it"}
    with pytest.raises(ValueError, match="was trained on 40 of these sketches"):
        HeadJudge(head, on_seen="raise").judge(data, elements, features)
    assert HeadJudge(head).judge(data, elements).table.equals(presence.table)  # from the images


def test_doodles_of_another_seed_are_no_sources_that_were_trained_on(head, data):
    other = doodles(CONCEPTS, instances=5, judgments=0, size=32, seed=1)
    assert not set(other.table["image_id"]) & set(data.table["image_id"])
    presence = HeadJudge(head).judge(other, annotated_elements(other))
    assert presence.coverage == 1


def test_the_source_of_a_judge_tells_its_settings(head, data, features):
    source = HeadJudge(head).source
    assert f"head {head.digest[:12]})" in source
    again = fit_presence(PresenceHead(features.f_ND.shape[1], head.pairs, 0.1, 0.0), data, features)
    assert again.digest != head.digest
    presence = CrossFittedJudge(C=0.3, share=0.0).judge(data, annotated_elements(data), features)
    assert "(C 0.3, share 0), out of 5 folds" in presence.source


def test_a_fit_in_memory_waits_for_no_other_process(data, features, tmp_path):
    """One process of several may fit alone: a sum over processes would wait for ever, or count items twice."""
    alone = fit_presence(PresenceHead(features.f_ND.shape[1], annotated_elements(data)), data, features)
    summed = []
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.distributed, "all_reduce", summed.append)
            again = fit_presence(PresenceHead(features.f_ND.shape[1], annotated_elements(data)), data, features)
            assert summed == []
            again.take_statistics([(torch.zeros(2, features.f_ND.shape[1]), torch.arange(2))], over_processes=True)
            assert len(summed) == 1
    finally:
        torch.distributed.destroy_process_group()
    assert again.pairs.pairs == alone.pairs.pairs


def test_cross_fitted_judge_reads_a_backbone_or_features(backbone, data, features):
    elements = annotated_elements(data)
    judge = CrossFittedJudge(backbone, C=0.3, cache_dir=None)
    assert (judge.layer, isinstance(judge, PresenceJudge)) == ("output", True)
    presence = judge.judge(data, elements)
    assert presence.coverage == 1
    assert "out of 5 folds of doodles by source" in presence.source
    again = CrossFittedJudge(C=0.3).judge(data, elements, features)
    np.testing.assert_allclose(again.table["probability"], presence.table["probability"], rtol=1e-6)
    part = replace(features, f_ND=features.f_ND[1:], rows=features.rows[1:])
    assert CrossFittedJudge().judge(data, elements, part).missing == {
        "the image could not be read": len(elements["lion"])
    }
    with pytest.raises(ValueError, match="needs a backbone to read images"):
        CrossFittedJudge().judge(data, elements)
