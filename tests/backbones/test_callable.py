from __future__ import annotations

import functools
import sys

import pytest
import torch
from torch import nn

from humanlike.backbones.callable import CallableBackbone, CallableError, from_path
from humanlike.backbones.frozen import weights_digest
from humanlike.backbones.transforms import ImageTransform
from humanlike.backbones.vision import TimmBackbone

TRANSFORM = {"size": 16}


class Net(nn.Module):
    transform = ImageTransform(16)

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.conv(x))

    def encode(self, x):
        return self.conv(x).mean((2, 3))


def test_a_module_is_evaluated_and_left_as_it_was():
    net = Net().train()
    net.drop.eval()
    backbone = CallableBackbone(net, TRANSFORM)
    x_B3HW = torch.randn(2, 3, 16, 16)
    found = backbone.features(x_B3HW, ["output"])["output"]
    assert torch.equal(found, net.conv(x_B3HW).detach().flatten(1))
    assert (net.training, net.conv.training, net.drop.training) == (True, True, False)
    assert all(p.requires_grad for p in net.parameters())


@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: n.encode, lambda n: functools.partial(n.encode)])
def test_the_weights_hash_is_that_of_the_module_behind_the_callable(wrap):
    net = Net()
    backbone = CallableBackbone(wrap(net), TRANSFORM, name="net")
    assert backbone.weights_hash == weights_digest("net", net)
    before = backbone.weights_hash
    with torch.no_grad():
        net.conv.bias += 1
    assert backbone.weights_hash != before


def test_an_opaque_function_is_known_by_what_it_does():
    net, other = Net(), Net()
    hashes = [CallableBackbone(lambda x, n=n: n.encode(x), TRANSFORM, "f").weights_hash for n in (net, net, other)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_random_function_is_refused():
    with pytest.raises(ValueError, match=r"different features for the same images.*eval\(\)"):
        _ = CallableBackbone(lambda x: torch.rand(len(x), 3), TRANSFORM, "noise").weights_hash


@pytest.mark.parametrize("output", [lambda x: x.sum(), lambda x: x[:1], lambda x: [1, 2]])
def test_wrong_outputs_are_a_sentence(output):
    with pytest.raises(TypeError, match=r"must give a \(2, D\) tensor"):
        CallableBackbone(output, TRANSFORM, "wrong").features(torch.zeros(2, 3, 16, 16))


def test_a_callable_that_raises_is_named_with_its_input():
    def broken(x_B3HW):
        raise KeyError("no such layer")

    with pytest.raises(CallableError, match=r"broken failed on a tensor of shape \(2, 3, 16, 16\): KeyError: 'no such"):
        CallableBackbone(broken, TRANSFORM).features(torch.zeros(2, 3, 16, 16))


def test_a_transform_and_a_callable_are_needed():
    with pytest.raises(TypeError, match="needs its transform"):
        CallableBackbone(Net(), None)
    with pytest.raises(TypeError, match="int is not callable"):
        CallableBackbone(3, TRANSFORM)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable module of a user's own."""
    (tmp_path / "users_models.py").write_text(
        "import functools, os\n"
        "from subprocess import run\n"
        "import torch\n"
        "from torch import nn\n"
        "from torch.nn import functional as F\n"
        "from humanlike.backbones.transforms import ImageTransform\n"
        "class Net(nn.Module):\n"
        "    transform = ImageTransform(16)\n"
        "    def __init__(self, channels=4):\n"
        "        super().__init__()\n"
        "        self.conv = nn.Conv2d(3, channels, 3)\n"
        "    def forward(self, x):\n"
        "        return self.conv(x).mean((2, 3))\n"
        "def mean(x):\n"
        "    return x.mean((2, 3))\n"
        "def make(channels):\n"
        "    return Net(channels)\n"
        "ready = Net(7)\n"
        "part = functools.partial(mean)\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "users_models"
    sys.modules.pop("users_models", None)


@pytest.mark.parametrize(
    ("path", "arguments", "width"),
    [
        ("users_models:mean", None, 3),
        ("users_models.mean", None, 3),
        ("users_models:ready", None, 7),
        ("users_models:Net", None, 4),
        ("users_models:Net", {"channels": 5}, 5),
        ("users_models:make", {"channels": 6}, 6),
        ("users_models:part", None, 3),
        ("users_models:ready.forward", None, 7),
        ("users_models:F.relu", None, 3 * 16 * 16),
    ],
)
def test_importable_objects(package, path, arguments, width):
    backbone = from_path(path, TRANSFORM, arguments=arguments)
    assert backbone.name == path.replace(":", ".").rpartition(".")[2]
    assert backbone.features(torch.zeros(2, 3, 16, 16), ["output"])["output"].shape == (2, width)


def test_the_objects_own_transform_is_taken(package):
    assert from_path("users_models:ready").transform == ImageTransform(16)
    with pytest.raises(TypeError, match="users_models:mean has no `transform`"):
        from_path("users_models:mean")


def test_a_backbone_is_taken_as_it_is():
    path = "humanlike.backbones.vision:TimmBackbone"
    backbone = from_path(path, arguments={"architecture": "test_vit", "weights": None})
    assert isinstance(backbone, TimmBackbone)


def test_paths_that_lead_nowhere(package):
    with pytest.raises(ModuleNotFoundError, match="PYTHONPATH"):
        from_path("no_such_package:thing", TRANSFORM)
    with pytest.raises(ValueError, match=r"'users_models' has no 'meen'; did you mean mean\?"):
        from_path("users_models:meen", TRANSFORM)
    with pytest.raises(ValueError, match=r"'users_models' has no 'x'; it has .*mean"):
        from_path("users_models:x", TRANSFORM)
    with pytest.raises(ValueError, match=r"package\.module:attribute"):
        from_path("users models", TRANSFORM)
    with pytest.raises(TypeError, match="int is not callable"):
        from_path("users_models:number", TRANSFORM)


@pytest.mark.parametrize("path", ["os:system", "subprocess.run", "builtins:exec"])
def test_the_standard_library_is_refused(path):
    with pytest.raises(ValueError, match="standard library"):
        from_path(path, TRANSFORM, arguments={})


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("humanlike.files:os.remove", "os"),
        ("humanlike.files:os.path.join", "os"),
        ("torch.hub:shutil.rmtree", "shutil"),
        ("users_models:os.system", "os"),
        ("users_models:run", "subprocess"),
        ("users_models.run", "subprocess"),
        ("users_models:functools.partial", "functools"),
    ],
)
def test_a_module_that_imports_the_standard_library_is_no_way_into_it(package, path, module):
    with pytest.raises(ValueError, match=rf"leads to '{module}' of Python's standard library"):
        from_path(path, TRANSFORM, arguments={})
