"""SketchDataModule: sources whole, every item once, an order that has an address."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from humanlike.data.datamodule import EpochOrder, SketchDataModule
from humanlike.types import Features, Sketches


class Squares:
    """Item i is a gray square of value i."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def load(self, index):
        return Image.new("RGB", (4, 4), (index, index, index))

    def content_hash(self, index):
        return str(index)

    def describe(self, index):
        return f"square {index}"


def transform(image):
    return torch.from_numpy(np.array(image, dtype=np.float32)).permute(2, 0, 1)


@pytest.fixture
def data():
    n = 40
    table = pd.DataFrame(
        {
            "sketch_id": [f"s{i}" for i in range(n)],
            "concept": [["cat", "dog"][i // 2 % 2] for i in range(n)],
            "condition": [float(i % 2) for i in range(n)],
            "image_id": [f"photo{i // 2}" for i in range(n)],
        }
    )
    return Sketches("squares", table, ("ant", "cat", "dog"), Squares(n))


FOLD_N = np.arange(40) // 2 % 5


def test_batches_hold_the_items_they_name(data):
    module = SketchDataModule(data, transform, FOLD_N, val_fold=1, batch_size=7)
    seen = []
    for x, label_B, index_B in module.train_dataloader():
        assert x.shape[1:] == (3, 4, 4)
        assert torch.equal(x[:, 0, 0, 0].long(), index_B)
        assert torch.equal(label_B, torch.tensor(data.target_N)[index_B])
        seen += index_B.tolist()
    assert sorted(seen) == np.flatnonzero(FOLD_N != 1).tolist()
    assert [i for _, _, index_B in module.val_dataloader() for i in index_B.tolist()] == np.flatnonzero(
        FOLD_N == 1
    ).tolist()
    assert module.present_labels == (1, 2)


def test_order_depends_on_seed_epoch_and_name_only(data):
    def order(module, epoch, ranks=1):
        samplers = [EpochOrder(module.train_items, module.seed, ranks, rank) for rank in range(ranks)]
        for sampler in samplers:
            sampler.set_epoch(epoch)
        dealt = [list(sampler) for sampler in samplers]
        interleaved = [item for turn in zip(*dealt, strict=True) for item in turn]
        return [module.train_items.data.table["sketch_id"].iloc[module.train_items.rows[i]] for i in interleaved]

    module = SketchDataModule(data, transform, FOLD_N, seed=3)
    assert order(module, 0) == order(module, 0)
    assert order(module, 0) != order(module, 1)
    assert order(module, 0) != order(SketchDataModule(data, transform, FOLD_N, seed=4), 0)
    assert order(module, 2, ranks=2) == order(module, 2)
    filled = order(module, 2, ranks=3)  # 32 items on 3 processes: 33 turns
    assert filled == [*order(module, 2), order(module, 2)[0]]
    reversed_data = data.select(np.arange(40)[::-1])
    assert order(SketchDataModule(reversed_data, transform, FOLD_N[::-1], seed=3), 0) == order(module, 0)


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_evaluation_visits_every_item_once_on_any_number_of_processes(data, processes, monkeypatch):
    seen = []
    for rank in range(processes):
        module = SketchDataModule(data, transform, FOLD_N, batch_size=3)
        monkeypatch.setattr(module, "_processes", lambda rank=rank: (processes, rank))
        seen += [i for _, _, index_B in module.val_dataloader() for i in index_B.tolist()]
    assert sorted(seen) == np.flatnonzero(FOLD_N == 0).tolist()


def test_more_processes_than_items_is_a_sentence(data, monkeypatch):
    module = SketchDataModule(data, transform, FOLD_N)
    monkeypatch.setattr(module, "_processes", lambda: (9, 0))
    with pytest.raises(ValueError, match="8 items cannot be shared by 9 processes"):
        module.val_dataloader()


def test_training_goes_on_in_the_middle_of_an_epoch(data):
    def module():
        return SketchDataModule(data, transform, FOLD_N, batch_size=5)  # 32 items, 7 batches an epoch

    def served(loader):
        return [index_B.tolist() for _, _, index_B in loader]

    loader = module().train_dataloader()
    epochs = [served(loader), served(loader)]
    assert epochs[0] != epochs[1]
    first = module()
    iterator = iter(first.train_dataloader())
    assert [next(iterator)[2].tolist() for _ in range(3)] == epochs[0][:3]
    second = module()
    second.load_state_dict(first.state_dict())
    loader = second.train_dataloader()
    assert [served(loader), served(loader)] == [epochs[0][3:], epochs[1]]
    # a pass that is left early without a checkpoint is not gone on with
    loader = first.train_dataloader()
    next(iter(loader))
    assert served(loader) == epochs[1]
    assert served(first.train_dataloader()) == epochs[0]


def test_features_are_served_in_place_of_images(data):
    rows = np.arange(0, 40, 2)
    features = Features(np.arange(20, dtype=np.float32)[:, None] + 100, rows, {1: "unreadable"}, "layer", {})
    fold_N = np.where(np.arange(40) % 2 == 0, FOLD_N, -1)
    module = SketchDataModule(data, None, fold_N, features=features)
    for x, _, index_B in module.statistics_dataloader():
        assert torch.equal(x[:, 0], index_B / 2 + 100)
    with pytest.raises(ValueError, match="16 items have no features, the first is item 3"):
        SketchDataModule(data, None, FOLD_N, features=features)


def test_workers_serve_the_same(data):
    def served(num_workers):
        module = SketchDataModule(data, transform, FOLD_N, batch_size=5, num_workers=num_workers)
        return [index_B.tolist() for _, _, index_B in module.train_dataloader()]

    assert served(1) == served(0)


def test_errors_are_sentences(data):
    with pytest.raises(ValueError, match=r"sources stand in training and in validation, for example image_id 'photo"):
        SketchDataModule(data, transform, np.arange(40) % 5)
    with pytest.raises(ValueError, match="there are no validation items"):
        SketchDataModule(data, transform, FOLD_N, val_fold=7)
    with pytest.raises(ValueError, match="fold of each of the 40 items"):
        SketchDataModule(data, transform, FOLD_N[:3])
    with pytest.raises(ValueError, match="batch_size"):
        SketchDataModule(data, transform, FOLD_N, batch_size=0)
    with pytest.raises(ValueError, match="needs a transform"):
        SketchDataModule(data, None, FOLD_N)
