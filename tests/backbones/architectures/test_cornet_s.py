"""CORnet-S against its description unrolled by hand, and against the names in its published checkpoint."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from humanlike.backbones.architectures.cornet_s import CORnetS, RecurrentArea

AREAS = {"V2": (64, 128, 2), "V4": (128, 256, 4), "IT": (256, 512, 2)}


def published_shapes() -> dict[str, tuple[int, ...]]:
    """Names and shapes of the weights in the published file (without the batch counters)."""
    shapes: dict[str, tuple[int, ...]] = {}

    def norm(name: str, channels: int) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.{part}"] = (channels,)

    shapes |= {"V1.conv1.weight": (64, 3, 7, 7), "V1.conv2.weight": (64, 64, 3, 3)}
    norm("V1.norm1", 64)
    norm("V1.norm2", 64)
    for area, (before, channels, times) in AREAS.items():
        wide = 4 * channels
        shapes[f"{area}.conv_input.weight"] = (channels, before, 1, 1)
        shapes[f"{area}.skip.weight"] = (channels, channels, 1, 1)
        norm(f"{area}.norm_skip", channels)
        shapes[f"{area}.conv1.weight"] = (wide, channels, 1, 1)
        shapes[f"{area}.conv2.weight"] = (wide, wide, 3, 3)
        shapes[f"{area}.conv3.weight"] = (channels, wide, 1, 1)
        for t in range(times):
            norm(f"{area}.norm1_{t}", wide)
            norm(f"{area}.norm2_{t}", wide)
            norm(f"{area}.norm3_{t}", channels)
    return shapes | {"decoder.linear.weight": (1000, 512), "decoder.linear.bias": (1000,)}


def test_names_and_shapes_are_the_published_ones():
    with torch.device("meta"):
        state = CORnetS().state_dict()
    found = {name: tuple(value.shape) for name, value in state.items() if "num_batches" not in name}
    assert found == published_shapes()


def test_the_parameters_number_53_4_million_as_the_paper_says():
    with torch.device("meta"):
        assert sum(p.numel() for p in CORnetS().parameters()) == pytest.approx(53.4e6, rel=1e-3)


@pytest.mark.parametrize("times", [1, 2, 4])
def test_an_area_is_its_recurrence_written_out(times):
    torch.manual_seed(times)
    area = RecurrentArea(5, 3, times).eval()
    for module in area.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            torch.nn.init.normal_(module.weight)
            torch.nn.init.normal_(module.bias)
    w = area.state_dict()

    def norm(a: torch.Tensor, name: str) -> torch.Tensor:
        mean, var, weight, bias = (
            w[f"{name}.{k}"][:, None, None] for k in ("running_mean", "running_var", "weight", "bias")
        )
        return (a - mean) / (var + 1e-5).sqrt() * weight + bias

    x = torch.randn(2, 5, 8, 8)
    h = functional.conv2d(x, w["conv_input.weight"])
    for t in range(times):
        stride = 2 if t == 0 else 1
        skip = norm(functional.conv2d(h, w["skip.weight"], stride=2), "norm_skip") if t == 0 else h
        a = norm(functional.conv2d(h, w["conv1.weight"]), f"norm1_{t}").clamp(min=0)
        a = norm(functional.conv2d(a, w["conv2.weight"], stride=stride, padding=1), f"norm2_{t}").clamp(min=0)
        h = (norm(functional.conv2d(a, w["conv3.weight"]), f"norm3_{t}") + skip).clamp(min=0)
    torch.testing.assert_close(area(x), h, rtol=1e-4, atol=1e-4)
    assert h.shape == (2, 3, 4, 4)


def test_maps_halve_from_area_to_area():
    with torch.device("meta"):
        network = CORnetS().eval()
        x, shapes = torch.zeros(1, 3, 224, 224), []
        for area in ("V1", "V2", "V4", "IT"):
            x = network.get_submodule(area)(x)
            shapes.append(tuple(x.shape[1:]))
    assert shapes == [(64, 56, 56), (128, 28, 28), (256, 14, 14), (512, 7, 7)]
