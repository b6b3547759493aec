"""Keras's layout against a forward pass written down in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import timm
import torch

from humanlike.backbones.hdf5_vit import convert_vit, read_vit

WIDTH, HEADS, DEPTH, PATCH, SIZE, CLASSES = 12, 3, 2, 4, 8, 5
TOKENS = (SIZE // PATCH) ** 2 + 1
ROOT = "model_weights"


def arrays() -> dict[str, np.ndarray]:
    """Named and shaped as Keras saves a whole model with vit-keras's layers."""
    random = np.random.default_rng(0)

    def dense(path: str, rows: int, columns: int) -> dict[str, np.ndarray]:
        return {f"{path}/kernel:0": random.normal(size=(rows, columns)), f"{path}/bias:0": random.normal(size=columns)}

    def norm(path: str) -> dict[str, np.ndarray]:
        return {f"{path}/gamma:0": random.normal(size=WIDTH), f"{path}/beta:0": random.normal(size=WIDTH)}

    position = f"{ROOT}/Transformer/posembed_input/Transformer/posembed_input"
    found = {
        f"{ROOT}/embedding/embedding/kernel:0": random.normal(size=(PATCH, PATCH, 3, WIDTH)),
        f"{ROOT}/embedding/embedding/bias:0": random.normal(size=WIDTH),
        f"{ROOT}/class_token/class_token/cls:0": random.normal(size=(1, 1, WIDTH)),
        f"{position}/pos_embedding:0": random.normal(size=(1, TOKENS, WIDTH)),
        **norm(f"{ROOT}/Transformer/encoder_norm"),
        **dense(f"{ROOT}/head/head", WIDTH, CLASSES),
    }
    for i in range(DEPTH):
        block = f"{ROOT}/Transformer/encoderblock_{i}/Transformer/encoderblock_{i}"
        found |= norm(f"{block}/LayerNorm_0") | norm(f"{block}/LayerNorm_2")
        for part in ("query", "key", "value", "out"):
            found |= dense(f"{block}/MultiHeadDotProductAttention_1/{part}", WIDTH, WIDTH)
        found |= dense(f"{block}/Dense_0", WIDTH, 4 * WIDTH) | dense(f"{block}/Dense_1", 4 * WIDTH, WIDTH)
    return {name: value.astype(np.float32) for name, value in found.items()}


def referee(w: dict[str, np.ndarray], image_HW3: np.ndarray) -> np.ndarray:
    """The logits for one image, step by step as the layers of vit-keras are documented."""

    def get(end: str) -> np.ndarray:
        (value,) = [v.astype(np.float64) for k, v in w.items() if k.removesuffix(":0").endswith(end)]
        return value

    def norm(x: np.ndarray, path: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-6) * get(f"{path}/gamma") + get(f"{path}/beta")

    def dense(x: np.ndarray, path: str) -> np.ndarray:
        return x @ get(f"{path}/kernel") + get(f"{path}/bias")

    patches = [
        (image_HW3[i : i + PATCH, j : j + PATCH, :, None] * get("embedding/kernel")).sum((0, 1, 2))
        for i in range(0, SIZE, PATCH)
        for j in range(0, SIZE, PATCH)
    ]
    x = np.stack([get("class_token/cls")[0, 0], *(p + get("embedding/bias") for p in patches)])
    x = x + get("pos_embedding")[0]
    for i in range(DEPTH):
        block = f"encoderblock_{i}"
        attention = f"{block}/MultiHeadDotProductAttention_1"
        h = norm(x, f"{block}/LayerNorm_0")
        parts = [dense(h, f"{attention}/{part}") for part in ("query", "key", "value")]
        q, k, v = (part.reshape(TOKENS, HEADS, -1).swapaxes(0, 1) for part in parts)
        scores = np.exp(q @ k.swapaxes(1, 2) / math.sqrt(WIDTH // HEADS))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ v
        x = x + dense(mixed.swapaxes(0, 1).reshape(TOKENS, WIDTH), f"{attention}/out")
        h = dense(norm(x, f"{block}/LayerNorm_2"), f"{block}/Dense_0")
        gelu = h * 0.5 * (1 + np.vectorize(math.erf)(h / math.sqrt(2)))
        x = x + dense(gelu, f"{block}/Dense_1")
    return dense(norm(x, "encoder_norm")[0], "head")


def network() -> torch.nn.Module:
    shape = {"img_size": SIZE, "patch_size": PATCH, "embed_dim": WIDTH, "depth": DEPTH, "num_heads": HEADS}
    return timm.models.VisionTransformer(num_classes=CLASSES, **shape).eval()


def test_the_converted_network_gives_keras_logits():
    weights, converted = arrays(), network()
    converted.load_state_dict(convert_vit(weights), strict=True)
    image_HW3 = np.random.default_rng(1).normal(size=(SIZE, SIZE, 3))
    x_13HW = torch.from_numpy(image_HW3.transpose(2, 0, 1)[None]).float()
    with torch.no_grad():
        found = converted(x_13HW)[0].numpy()
    np.testing.assert_allclose(found, referee(weights, image_HW3), rtol=1e-4, atol=1e-4)


def test_foreign_and_missing_arrays_are_named():
    with pytest.raises(ValueError, match=r"'model_weights/conv5/kernel:0' is no weight of a Keras vision transformer"):
        convert_vit({f"{ROOT}/conv5/kernel:0": np.zeros((2, 2))})
    incomplete = {k: v for k, v in arrays().items() if "encoderblock_1" not in k or "/key/bias" not in k}
    with pytest.raises(ValueError, match=r"lacks blocks.1.attn.key.bias"):
        convert_vit(incomplete, "w.h5")


def test_files_are_read_where_h5py_is_installed(tmp_path):
    path = tmp_path / "w.h5"
    try:
        import h5py
    except ModuleNotFoundError:
        with pytest.raises(ModuleNotFoundError, match="pip install h5py"):
            read_vit(path)
        return
    with h5py.File(path, "w") as file:
        for name, value in arrays().items():
            file[name] = value
        file["optimizer_weights/Adam/m:0"] = np.zeros(3)
    read, direct = read_vit(path), convert_vit(arrays())
    assert set(read) == set(direct)
    assert all(torch.equal(read[name], direct[name]) for name in direct)
    path.write_bytes(b"not HDF5")
    with pytest.raises(ValueError, match="cannot be read as HDF5"):
        read_vit(path)
