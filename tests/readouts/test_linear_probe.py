"""LinearProbe: the same optimum as LogisticReadout, frozen backbones, checkpoints, exact resumption."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from humanlike.data.datamodule import SketchDataModule
from humanlike.readouts import LogisticReadout, stratified_group_folds
from humanlike.readouts.checkpoint_io import AtomicCheckpointIO
from humanlike.readouts.linear_probe import LinearProbe, Standardize
from humanlike.types import Features

SGD = partial(torch.optim.SGD, lr=0.05, momentum=0.9)
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*does not have many workers.*",
    "ignore:.*callbacks used to create the checkpoint.*",
)


def make_trainer(tmp_path, **keywords):
    return pl.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        default_root_dir=tmp_path,
        plugins=[AtomicCheckpointIO()],
        **{"enable_checkpointing": False, **keywords},
    )


@pytest.fixture
def folds(noise_sketches):
    return stratified_group_folds(noise_sketches.table["concept"], noise_sketches.table["image_id"].to_numpy(), 5)


@pytest.fixture
def module(noise_sketches, folds, tiny_backbone):
    return SketchDataModule(noise_sketches, tiny_backbone.transform, folds, batch_size=16)


def make_probe(module, backbone, **keywords):
    return LinearProbe(216, 4, module.present_labels, backbone=backbone, **{"optimizer": SGD, **keywords})


def test_standardisation_equals_numpy():
    f_ND = np.random.default_rng(0).normal(3, [1.0, 20.0, 1e-3, 0.0], (50, 4)).astype(np.float32)
    layer, f = Standardize(4), torch.from_numpy(f_ND).double()
    layer.set_statistics(50, f.sum(0), f.square().sum(0))
    z_ND = layer(torch.from_numpy(f_ND)).numpy()
    expected = (f_ND - f_ND.mean(0, dtype=float)) / np.where(
        f_ND.std(0, dtype=float) > 1e-6, f_ND.std(0, dtype=float), 1
    )
    np.testing.assert_allclose(z_ND, expected, atol=2e-3)
    assert (z_ND[:, 3] == 0).all()


def test_full_batch_training_reaches_the_logistic_optimum(noise_sketches, folds, tmp_path):
    rng = np.random.default_rng(0)
    target_N = noise_sketches.target_N
    f_ND = (rng.normal(size=(90, 5)) + 1.0 * rng.normal(size=(4, 5))[target_N]).astype(np.float32)
    features = Features(f_ND, np.arange(90), {}, "x", {})
    module = SketchDataModule(noise_sketches, None, folds, batch_size=90, features=features)
    train = module.train_items.rows
    probe = LinearProbe(5, 4, module.present_labels, C=0.5, optimizer=partial(torch.optim.SGD, lr=1.0, momentum=0.5))
    make_trainer(tmp_path, max_epochs=200, log_every_n_steps=1, limit_val_batches=0).fit(probe, datamodule=module)
    readout = LogisticReadout(C=0.5).fit(f_ND[train], target_N[train], 4)
    p_NL = probe.predict_proba(torch.from_numpy(f_ND)).detach().numpy()
    np.testing.assert_allclose(p_NL, readout.predict_proba(f_ND), atol=1e-3)
    assert (p_NL[:, 1] == 0).all()
    # the logged loss is the objective in its mean form
    assert float(probe.trainer.callback_metrics["train_loss"]) * 0.5 * len(train) == pytest.approx(
        readout.objective_, rel=1e-4
    )


def test_validation_equals_a_plain_loop(module, tiny_backbone, tmp_path):
    probe = make_probe(module, tiny_backbone)
    trainer = make_trainer(tmp_path, max_epochs=2, log_every_n_steps=1)
    trainer.fit(probe, datamodule=module)
    logged = {k: float(v) for k, v in trainer.callback_metrics.items()}
    loss, correct, n = 0.0, 0, 0
    with torch.no_grad():
        for x, label_B, _ in module.val_dataloader():
            p_BL = probe.predict_proba(x)
            loss -= float(p_BL[torch.arange(len(x)), label_B].log().sum())
            correct += int((p_BL.argmax(1) == label_B).sum())
            n += len(x)
    assert n == len(module.val_items)
    assert logged["val_loss"] == pytest.approx(loss / n, rel=1e-5)
    assert logged["val_accuracy"] == pytest.approx(correct / n)


def test_frozen_means_frozen(module, tiny_backbone, tmp_path):
    before = {name: value.clone() for name, value in tiny_backbone.state_dict().items()}
    probe = make_probe(module, tiny_backbone.train())
    make_trainer(tmp_path, max_steps=50, log_every_n_steps=1).fit(probe, datamodule=module)
    assert probe.trainer.global_step == 50
    after = tiny_backbone.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert float(probe.head.weight.detach().abs().max()) > 0
    assert not any("network" in name for name in probe.state_dict())


@pytest.mark.parametrize(("cut", "total"), [(5, 10), (7, 14), (3, 5)])  # 5 steps an epoch: at its end, inside, first
@pytest.mark.parametrize("saved", ["by the trainer", "by a callback"])
def test_resuming_is_bit_equal(tiny_backbone, tmp_path, noise_sketches, folds, cut, total, saved):
    def fit(max_steps, ckpt_path=None, **keywords):
        own = SketchDataModule(noise_sketches, tiny_backbone.transform, folds, batch_size=16)
        probe = make_probe(own, tiny_backbone, optimizer=partial(torch.optim.AdamW, lr=0.01, weight_decay=0.0))
        trainer = make_trainer(tmp_path, max_steps=max_steps, log_every_n_steps=1, **keywords)
        trainer.fit(probe, datamodule=own, ckpt_path=ckpt_path, weights_only=True)
        assert trainer.global_step == max_steps
        return probe, trainer

    whole, _ = fit(total)
    if saved == "by the trainer":
        fit(cut)[1].save_checkpoint(tmp_path / "half.ckpt")
    else:  # as a run leaves it that is killed later
        callback = pl.callbacks.ModelCheckpoint(tmp_path, "half", every_n_train_steps=cut, save_top_k=1)
        fit(min(total, 2 * cut - 1), callbacks=[callback], enable_checkpointing=True)
    resumed, _ = fit(total, tmp_path / "half.ckpt")
    for name, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name


def test_checkpoint_loads_with_weights_only_and_refuses_another_probe(module, tiny_backbone, tmp_path):
    probe = make_probe(module, tiny_backbone)
    trainer = make_trainer(tmp_path, max_epochs=1, log_every_n_steps=1)
    trainer.fit(probe, datamodule=module)
    path = tmp_path / "probe.ckpt"
    trainer.save_checkpoint(path)
    content = torch.load(path, weights_only=True)
    assert content["hyper_parameters"]["present_labels"] == [0, 2, 3]
    again = LinearProbe.load_from_checkpoint(path, weights_only=True, backbone=tiny_backbone)
    x, _, _ = next(iter(module.val_dataloader()))
    assert torch.equal(again.predict_proba(x), probe.predict_proba(x))
    other = make_probe(module, tiny_backbone, C=2.0)
    with pytest.raises(ValueError, match=r"another readout \(C: 1.0 there, 2.0 here\).*resume=false"):
        make_trainer(tmp_path, max_epochs=2).fit(other, datamodule=module, ckpt_path=path, weights_only=True)


def test_checkpoints_are_whole_and_damage_is_named(tmp_path, monkeypatch):
    storage, path = AtomicCheckpointIO(), tmp_path / "last.ckpt"
    storage.save_checkpoint({"a": torch.ones(2)}, path)
    monkeypatch.setattr(torch, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        storage.save_checkpoint({"a": torch.zeros(2)}, path)
    assert torch.equal(storage.load_checkpoint(path)["a"], torch.ones(2))
    assert [p.name for p in tmp_path.iterdir()] == ["last.ckpt"]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"last.ckpt cannot be read .*delete it to start anew"):
        storage.load_checkpoint(path)
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        storage.load_checkpoint(tmp_path / "none.ckpt")


def test_prediction_gives_item_indices(module, tiny_backbone, tmp_path):
    probe = make_probe(module, tiny_backbone)
    probe.compute_statistics(module.statistics_dataloader())
    batches = make_trainer(tmp_path).predict(probe, datamodule=module)
    assert torch.cat([index_B for index_B, _ in batches]).tolist() == module.val_items.rows.tolist()
    assert torch.cat([p_BL for _, p_BL in batches]).shape == (len(module.val_items), 4)


def test_errors_are_sentences(module, tiny_backbone, tmp_path, noise_sketches, folds):
    with pytest.raises(ValueError, match="two or more of 0 … 3, got \\[2\\]"):
        LinearProbe(3, 4, [2])
    with pytest.raises(ValueError, match="C, the inverse"):
        LinearProbe(3, 4, [0, 2], C=0.0)
    with pytest.raises(RuntimeError, match="fit it with a SketchDataModule"):
        make_trainer(tmp_path, max_epochs=1).fit(
            make_probe(module, tiny_backbone), module.train_dataloader(), module.val_dataloader()
        )
    with pytest.raises(ValueError, match="label 3 does not occur in training"):
        make_trainer(tmp_path, max_epochs=1, log_every_n_steps=1).fit(
            LinearProbe(216, 4, [0, 2], backbone=tiny_backbone), datamodule=module
        )
    f_ND = np.ones((90, 3), np.float32)
    f_ND[7] = np.inf
    broken = SketchDataModule(
        noise_sketches, None, np.where(folds == 0, 0, 1), features=Features(f_ND, np.arange(90), {}, "x", {})
    )
    probe = LinearProbe(3, 4, broken.present_labels)
    with pytest.raises(ValueError, match="item 7 has NaN or infinite features"):
        probe.compute_statistics([(torch.from_numpy(f_ND), None, torch.arange(90))])
