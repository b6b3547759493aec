from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from humanlike.backbones.checkpoint import Checkpoint
from humanlike.backbones.layers import class_score_layer
from humanlike.backbones.network import NetworkBackbone
from humanlike.backbones.vision import TimmBackbone
from humanlike.files import sha256_file

MODULE = {"pattern": r"^module\.", "replace": ""}


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2))


def state(prefix: str = "") -> dict[str, torch.Tensor]:
    own = network().state_dict()
    return {f"{prefix}{k}": torch.rand_like(v) if v.is_floating_point() else v for k, v in own.items()}


def saved(path, content):
    torch.save(content, path)
    return path


def filled(checkpoint: Checkpoint, net: nn.Module | None = None) -> dict[str, torch.Tensor]:
    net = net or network()
    checkpoint.load_into(net)
    return net.state_dict()


@pytest.mark.parametrize("key", ["state_dict", "model", "model_state_dict", "student", "network"])
def test_usual_places_are_found_and_others_named(tmp_path, key):
    tensors = state()
    found = filled(Checkpoint(saved(tmp_path / "w.pt", {key: tensors, "epoch": 3, "best": np.float64(0.5)})))
    assert all(torch.equal(found[k], v) for k, v in tensors.items())
    deep = saved(tmp_path / "deep.pt", {"a": {"b": {"trunk": tensors}}})
    assert torch.equal(filled(Checkpoint(deep, key="a.b.trunk"))["0.weight"], tensors["0.weight"])
    with pytest.raises(ValueError, match=r"has no 'c' of key='a.c'; there is b"):
        filled(Checkpoint(deep, key="a.c"))


def test_two_state_dicts_need_a_choice(tmp_path):
    student, teacher = state(), state()
    path = saved(tmp_path / "w.pt", {"student": student, "teacher": teacher})
    with pytest.raises(ValueError, match="several state dicts, under student, teacher"):
        filled(Checkpoint(path))
    assert torch.equal(filled(Checkpoint(path, key="teacher"))["3.weight"], teacher["3.weight"])


@settings(deadline=None, max_examples=20)
@given(prefix=st.from_regex(r"[a-z_]{1,8}(\.[a-z_0-9]{1,8})?\.", fullmatch=True))
def test_any_prefix_comes_off(prefix, tmp_path_factory):
    tensors = state(prefix)
    path = saved(tmp_path_factory.mktemp("w") / "w.pt", tensors)
    found = filled(Checkpoint(path, rename=[{"pattern": f"^{re.escape(prefix)}", "replace": ""}]))
    assert all(torch.equal(found[k.removeprefix(prefix)], v) for k, v in tensors.items())


def test_rules_apply_one_after_the_other_and_all_must_do_something(tmp_path):
    tensors = {"module.stem.conv.weight": torch.zeros(1)}
    rules = [MODULE, {"pattern": r"stem\.(\w+)", "replace": r"\1_0"}]
    assert list(Checkpoint("w", rename=rules).renamed(tensors)) == ["conv_0.weight"]
    with pytest.raises(ValueError, match=r"'\^x' changes no name \(first names: module.stem.conv.weight\)"):
        Checkpoint("w", rename=[{"pattern": "^x", "replace": ""}]).renamed(tensors)
    with pytest.raises(ValueError, match="turns several names into 'a'"):
        Checkpoint("w", rename=[{"pattern": ".*b.*", "replace": "a"}]).renamed({"xb": tensors, "yb": tensors})


def test_leftovers_must_be_named(tmp_path):
    tensors = state("module.")
    path = saved(tmp_path / "w.pt", {**tensors, "module.head.weight": torch.zeros(3)})
    strict = Checkpoint(path, rename=[MODULE])
    with pytest.raises(ValueError, match=r"1 unexpected \(first: head.weight\)"):
        filled(strict)
    assert strict.report(network()) == {"missing": [], "unexpected": ["head.weight"], "misshapen": []}
    allowed = Checkpoint(path, rename=[MODULE], allow_unexpected=[r"head\..*"])
    assert torch.equal(filled(allowed)["0.weight"], tensors["module.0.weight"])
    assert not any(allowed.report(network()).values())


def test_what_may_be_missing_keeps_its_value(tmp_path):
    tensors = {k: v for k, v in state().items() if not k.startswith("3.")}
    path = saved(tmp_path / "w.pt", tensors)
    with pytest.raises(ValueError, match=r"2 missing \(first: 3.weight, 3.bias\)"):
        filled(Checkpoint(path))
    net = network()
    before = net[3].weight.clone()
    found = filled(Checkpoint(path, allow_missing=[r"3\..*"]), net)
    assert torch.equal(found["3.weight"], before)
    assert torch.equal(found["0.weight"], tensors["0.weight"])


def test_a_classifier_that_the_checkpoint_lacks_gives_no_class_scores(tmp_path):
    """A random head would otherwise be read by `readout=imagenet_head` like a trained one."""
    tensors = {k: v for k, v in state().items() if not k.startswith("3.")}
    weights = Checkpoint(saved(tmp_path / "w.pt", tensors), allow_missing=[r"3\..*"])
    stated = {"size": 1, "mean": [0.5] * 3, "std": [0.5] * 3}

    def backbone(layer="pre_logits", **options):
        return NetworkBackbone(network, layer, stated, weights, name="tiny", classifier="3", **options)

    sentence = r"tiny: the checkpoint has no weights for the classifier \(3.weight, 3.bias kept random"
    with pytest.raises(ValueError, match=sentence):
        class_score_layer(backbone())
    for layer in ("logits", "3"):
        with pytest.raises(ValueError, match=sentence):
            backbone(layer, allow_logits=True)
    assert backbone().features(torch.zeros(2, 3, 1, 1), ["pre_logits"])["pre_logits"].shape == (2, 4)
    weights = Checkpoint(saved(tmp_path / "whole.pt", state()), allow_missing=[r"3\..*"])
    assert class_score_layer(backbone()) == "logits"


def test_a_prefix_in_the_way_is_pointed_out(tmp_path):
    path = saved(tmp_path / "w.pt", state("backbone.net."))
    with pytest.raises(ValueError, match=r"begin with 'backbone.net.': give rename=") as error:
        filled(Checkpoint(path))
    pattern = re.search(r"pattern: '(.*?)'", str(error.value))[1]
    filled(Checkpoint(path, rename=[{"pattern": pattern, "replace": ""}]))


def test_the_digest_is_checked_and_prefixes_do(tmp_path):
    save_file(state(), tmp_path / "w.safetensors")
    digest = sha256_file(tmp_path / "w.safetensors")
    filled(Checkpoint(tmp_path / "w.safetensors", sha256=digest))
    filled(Checkpoint(tmp_path / "w.safetensors", sha256=digest[:10]))
    with pytest.raises(ValueError, match="damaged or another version"):
        filled(Checkpoint(tmp_path / "w.safetensors", sha256="0" * 64))


def test_arguments_that_make_no_sense():
    with pytest.raises(ValueError, match="either file= or url="):
        Checkpoint()
    with pytest.raises(ValueError, match="either file= or url="):
        Checkpoint("w.pt", url="https://example.org/w.pt")
    with pytest.raises(ValueError, match=r"reads \{pattern: ..., replace: ...\}"):
        Checkpoint("w.pt", rename=[{"from": "a", "to": "b"}])
    with pytest.raises(ValueError, match="no regular expression"):
        Checkpoint("w.pt", allow_missing=["("])
    with pytest.raises(FileNotFoundError, match=r"gone.pt"):
        Checkpoint("gone.pt").path()


def test_a_fresh_training_run_is_measured_as_it_was(tmp_path):
    """The way of most users: DistributedDataParallel's names, their own classes, their own normalisation."""
    trained = TimmBackbone("test_resnet", None, seed=3, transform={"size": 32}, options={"num_classes": 7})
    names = {f"module.{k}": v for k, v in trained.network.state_dict().items()}
    path = saved(tmp_path / "run.pt", {"state_dict": names, "epoch": 9})
    transform = {"size": 32, "mean": [0.1, 0.2, 0.3], "std": [1.0, 1.0, 1.0]}
    options = {"num_classes": 7}
    read = TimmBackbone("test_resnet", Checkpoint(path, rename=[MODULE]), transform=transform, options=options)
    x_B3HW = torch.randn(2, 3, 32, 32)
    same = [b.features(x_B3HW, ["pre_logits"])["pre_logits"] for b in (trained, read)]
    assert torch.equal(*same)
    with pytest.raises(ValueError, match="say nothing about their preprocessing"):
        TimmBackbone("test_resnet", Checkpoint(path, rename=[MODULE]), options=options)
