"""Checked inputs → the folded problem: labels to positions, rows sorted by fold, statistics of every training set."""

from __future__ import annotations

import numpy as np
import torch

from humanlike.readouts.objective import ALL_ROWS, CHUNK_ROWS, ROUNDINGS, Block, FoldedProblem, standardisation


def checked_features(f_ND: np.ndarray, name: str = "f_ND") -> np.ndarray:
    """`f_ND` as a two-dimensional floating array.

    Raises:
        ValueError: When the shape is wrong or an entry is NaN or infinite; the message names the row and the column.
    """
    f_ND = np.asarray(f_ND)
    if f_ND.ndim != 2 or 0 in f_ND.shape:
        raise ValueError(f"{name} must be (rows, features) with at least one of each, got shape {f_ND.shape}")
    if f_ND.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {f_ND.dtype}")
    if f_ND.dtype not in (np.float32, np.float64):
        f_ND = f_ND.astype(np.float32)
    for start in range(0, len(f_ND), CHUNK_ROWS):
        bad = np.argwhere(~np.isfinite(f_ND[start : start + CHUNK_ROWS]))
        if len(bad):
            row, column = int(bad[0, 0]) + start, int(bad[0, 1])
            raise ValueError(
                f"{name} has {f_ND[row, column]} in row {row}, feature {column}; a readout needs finite features: look "
                "at the item of that row and at the layer they come from, or leave the row out"
            )
    return f_ND


def checked_labels(label_N: np.ndarray, rows: int, num_labels: int) -> np.ndarray:
    """`label_N` as (N,) int64 with values 0 … num_labels-1 and at least two different ones.

    Raises:
        ValueError: With the first row that does not fit, or when there is one class only.
        TypeError: When the labels are not whole numbers.
    """
    label_N = np.asarray(label_N)
    if label_N.shape != (rows,):
        raise ValueError(f"label_N must hold one label a feature row, ({rows},), got shape {label_N.shape}")
    if label_N.dtype.kind not in "iu":
        raise TypeError(f"label_N must hold label indices (integers), got dtype {label_N.dtype}")
    outside = np.flatnonzero((label_N < 0) | (label_N >= num_labels))
    if len(outside):
        raise ValueError(f"label_N is {label_N[outside[0]]} in row {outside[0]}; labels run from 0 to {num_labels - 1}")
    present = np.unique(label_N)
    if len(present) < 2:
        raise ValueError(
            f"all {rows} rows have label {present[0]}: one class only, and a classifier needs at least two; check the "
            "selection of concepts"
        )
    return label_N.astype(np.int64)


def folded_problem(
    f_ND: np.ndarray,
    class_N: np.ndarray,
    fold_N: np.ndarray | None,
    C: float,
    standardize: bool,
    device: str | torch.device = "cpu",
) -> tuple[FoldedProblem, np.ndarray, np.ndarray, np.ndarray]:
    """Sort the rows by fold and standardise them; see `objective`.

    Args:
        f_ND: (N, D) finite features.
        class_N: (N,) class position 0 … K-1.
        fold_N: (N,) fold 0 … F-1 that holds each row out; None for one model on all rows.
        C: Inverse strength of the penalty.
        standardize: Whether the penalty is on the weights of standardised features (else of the raw ones).
        device: Where tensors live.

    Returns:
        The problem; (N,) the row of `f_ND` at every sorted position; (D,) mean and (D,) scale of the shared rows.
    """
    num_models = 1 if fold_N is None else int(fold_N.max()) + 1
    held_N = np.full(len(f_ND), ALL_ROWS) if fold_N is None else fold_N
    order_N = np.argsort(held_N, kind="stable")
    mean_D, scale_D, constant_D = standardisation(f_ND)
    z_ND = np.empty(f_ND.shape, dtype=np.float32)
    for start in range(0, len(f_ND), CHUNK_ROWS):
        rows = order_N[start : start + CHUNK_ROWS]
        z_ND[start : start + CHUNK_ROWS] = np.where(constant_D, 0.0, (f_ND[rows] - mean_D) / scale_D)
    folds, starts = np.unique(held_N[order_N], return_index=True)
    stops = [*starts[1:], len(f_ND)]
    blocks = tuple(Block(int(f), int(a), int(b)) for f, a, b in zip(folds, starts, stops, strict=True))
    shift_MD, spread_MD = _training_statistics(z_ND, blocks, num_models)
    own_scale_MD = spread_MD if standardize else np.broadcast_to(1.0 / scale_D, spread_MD.shape).copy()
    problem = FoldedProblem(
        z_ND=torch.from_numpy(z_ND).to(device),
        y_N=torch.from_numpy(class_N[order_N]).to(device),
        blocks=blocks,
        shift_MD=torch.from_numpy(shift_MD).to(device),
        scale_MD=torch.from_numpy(own_scale_MD).to(device),
        C=C,
        num_classes=int(class_N.max()) + 1,
    )
    return problem, order_N, mean_D, scale_D


def _training_statistics(z_ND: np.ndarray, blocks: tuple[Block, ...], num_models: int) -> tuple[np.ndarray, np.ndarray]:
    """(M, D) mean and standard deviation over each model's training rows; 1 where a column is constant there."""
    total_BD, square_BD, low_BD, high_BD = (np.empty((len(blocks), z_ND.shape[1])) for _ in range(4))
    for i, block in enumerate(blocks):
        rows = z_ND[block.start : block.stop]
        total_BD[i], square_BD[i] = rows.sum(0, dtype=np.float64), np.einsum("nd,nd->d", rows, rows, dtype=np.float64)
        low_BD[i], high_BD[i] = rows.min(0), rows.max(0)
    noise = ROUNDINGS * np.finfo(np.float32).eps
    size_B = np.array([block.stop - block.start for block in blocks])
    shift_MD, spread_MD = (np.empty((num_models, z_ND.shape[1])) for _ in range(2))
    for model in range(num_models):
        train = np.array([block.fold != model for block in blocks])
        n = size_B[train].sum()
        shift_MD[model] = total_BD[train].sum(0) / n
        spread_D = np.sqrt(np.maximum(square_BD[train].sum(0) / n - shift_MD[model] ** 2, 0.0))
        constant_D = (low_BD[train].min(0) == high_BD[train].max(0)) | (spread_D <= noise * np.abs(shift_MD[model]))
        spread_MD[model] = np.where(constant_D, 1.0, spread_D)
    return shift_MD, spread_MD
