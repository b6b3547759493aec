import numpy as np
import pytest
import torch

from humanlike.backbones import projection as module
from humanlike.backbones.projection import GaussianProjection, StructuredProjection, transform_length
from humanlike.backbones.reduction import Reduction


def rows(number, width, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((number, width)).astype(np.float32))


def test_the_structured_projection_is_signs_fourier_transform_and_drawn_bins():
    x_BD = rows(5, 300)
    projection = StructuredProjection(300, 32, seed=2)
    spectrum = np.fft.fft(np.pad(x_BD.numpy() * projection._signs_D.numpy(), [(0, 0), (0, projection.length - 300)]))
    drawn = spectrum[:, projection._bins.numpy()]
    expected = np.stack([drawn.real, drawn.imag], axis=-1).reshape(5, 32) * np.sqrt(2 / 32)
    np.testing.assert_allclose(projection(x_BD).numpy(), expected, rtol=1e-4, atol=1e-4)
    assert set(projection._signs_D.tolist()) == {-1.0, 1.0}
    assert len(set(projection._bins.tolist())) == 16
    assert 1 <= projection._bins.min() <= projection._bins.max() < projection.length / 2


def test_squared_distances_are_kept_about_as_well_as_by_a_gaussian_matrix():
    x_BD = rows(40, 9000).clamp(min=0)
    before = torch.pdist(x_BD.double()).square()
    for kind in (GaussianProjection, StructuredProjection):
        ratio = torch.pdist(kind(9000, 512)(x_BD).double()).square() / before
        assert ratio.mean().item() == pytest.approx(1, abs=0.03)
        assert ratio.std().item() == pytest.approx((2 / 512) ** 0.5, rel=0.35)


@pytest.mark.parametrize("kind", [GaussianProjection, StructuredProjection])
def test_the_size_of_the_batch_does_not_matter(kind):
    x_BD = rows(11, 5000)
    whole = kind(5000, 64, seed=1)(x_BD)
    parts = torch.cat([kind(5000, 64, seed=1)(part) for part in x_BD.split(3)])
    torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(kind(5000, 64, seed=2)(x_BD), whole)


def test_a_matrix_in_a_file_or_drawn_again_has_the_bits_of_one_in_memory(monkeypatch):
    x_BD = rows(4, 5000)
    kept, filed = GaussianProjection(5000, 64), GaussianProjection(5000, 64, keep=False)
    first = kept(x_BD)
    assert torch.equal(filed(x_BD), first)
    assert torch.equal(filed(x_BD), first)
    assert (filed._written, len(filed._kept)) == (3, 0)
    monkeypatch.setattr(module, "FREE_SPACE", 10**12)
    drawn = GaussianProjection(5000, 64, keep=False)
    assert torch.equal(drawn(x_BD), first)
    assert torch.equal(drawn(x_BD), first)
    assert drawn._file is None


def test_layers_have_projections_of_their_own_where_asked():
    own, shared = Reduction(max_features=4, by_layer=True), Reduction(max_features=4)
    assert own.projection_seed("a") != own.projection_seed("b")
    assert shared.projection_seed("a") == shared.projection_seed("b") == 0
    assert len({own.view("a"), shared.view("a"), Reduction(max_features=4, projection="srft").view("a")}) == 3


def test_wrong_words_and_numbers():
    with pytest.raises(ValueError, match="even number"):
        StructuredProjection(100, 7)
    with pytest.raises(ValueError, match="projection must be one of gaussian, srft"):
        Reduction(projection="sparse")
    assert transform_length(9000) == 9216
