"""The presence head's optimum on features in memory, and predictions for sources that were never trained on.

Shapes: N items, D features, P pairs, F folds; see `presence_head` for the objective.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from humanlike.elements.grid import GridPool
from humanlike.elements.presence_head import PresenceHead
from humanlike.elements.presence_newton import RowProblem, newton
from humanlike.elements.presence_pairs import MISSING, ElementPairs
from humanlike.readouts.folds import stratified_group_folds
from humanlike.readouts.logistic import ConvergenceWarning
from humanlike.readouts.problem import checked_features
from humanlike.types import Features, Sketches

ROWS_AT_ONCE = 1024
NEWTON_ROWS = 2000  # its steps cost the cube of it


class _Rows(NamedTuple):
    """Training items of one concept: (n, D) features, (n, E) targets and which of them are known, and its pairs."""

    z_nD: torch.Tensor
    target_nE: torch.Tensor
    known_nE: torch.Tensor
    pairs: slice


def fit_presence(
    head: PresenceHead,
    data: Sketches,
    features: Features,
    rows: Sequence[int] | np.ndarray | None = None,
    *,
    tol: float = 1e-7,
    max_iter: int = 1000,
) -> PresenceHead:
    """Set a head to the optimum of its objective on some items, in float64, and return it.

    Newton's method on the rows where no element name has more than `NEWTON_ROWS` of them (`presence_newton`), else
    L-BFGS on the weights.

    Args:
        head: A head for these features; statistics and weights are replaced.
        data: The items, with annotated elements.
        features: Their features, before pooling.
        rows: Positions in `features` to train on; None: all.
        tol: Estimated relative distance of the objective to its optimum that is asked for.
        max_iter: L-BFGS steps at most; a ConvergenceWarning is given when they are not enough for 10 · `tol`.

    Raises:
        ValueError: Features are not finite or of another width, or nothing known is among the rows.
    """
    chosen = np.arange(len(features.rows)) if rows is None else np.asarray(rows, dtype=np.int64)
    item_n = features.rows[chosen]
    target_NE = head.pairs.targets(data)
    f_nD = pooled_rows(features.f_ND, head.pool, chosen)
    head.target_NE = torch.from_numpy(target_NE)
    head.take_statistics(_batches(f_nD, item_n, head))
    with torch.no_grad():
        z_nD = head.standardize(f_nD)
    concept_n = head.pairs.concept_positions(data.table["concept"].to_numpy()[item_n])
    parts = list(_by_concept(head.pairs, z_nD, torch.from_numpy(target_NE[item_n]), concept_n))
    if _largest_problem(head.pairs, parts, head.share) <= NEWTON_ROWS:
        gap = _by_newton(head, parts, tol)
    else:
        gap = _by_lbfgs(head, parts, tol, max_iter)
    if gap > 10 * tol:
        warnings.warn(
            f"the presence head stopped at an estimated relative gap of {gap:.1e} to its optimum (asked {tol:.0e}); "
            "raise max_iter or lower C",
            ConvergenceWarning,
            stacklevel=2,
        )
    head.trained_on = {
        "dataset": data.name,
        "items": len(chosen),
        "sources": sorted({str(s) for s in data.table["image_id"].to_numpy()[item_n]}),
    }
    return head


def out_of_fold_presence(
    data: Sketches,
    features: Features,
    elements: Mapping[str, Sequence[str]],
    *,
    C: float = 0.01,
    share: float = 1.0,
    pool: GridPool | None = None,
    n_splits: int = 5,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of presence, every item's from a head that never saw its source (`image_id`).

    Args:
        data: Items with annotated elements.
        features: Their features, before pooling.
        elements: Concept → elements; those without an annotation anywhere have no probability.
        C: See `PresenceHead`.
        share: See `PresenceHead`.
        pool: See `PresenceHead`.
        n_splits: Number of folds F, those of `stratified_group_folds` by concept and source.
        seed: Seed of the folds.

    Returns:
        (N, E) float64 probabilities, NaN for an item without features, a column its concept does not have, and a pair
        that no training item was annotated for; (N,) int64 fold, -1 for items without features.

    Raises:
        ValueError: A concept has fewer sources than there are folds, or see `fit_presence`.
    """
    pairs = ElementPairs({c: elements[c] for c in data.labels if elements.get(c)})
    concept_N, source_N = data.table["concept"].to_numpy(), data.table["image_id"].to_numpy()
    item_n = features.rows
    fold_n = stratified_group_folds(concept_N[item_n], source_N[item_n], n_splits, seed)
    known_NE = pairs.targets(data) != MISSING
    position_n = pairs.concept_positions(concept_N[item_n])
    p_NE = np.full(known_NE.shape, np.nan)
    for fold in range(n_splits):
        train, held = np.flatnonzero(fold_n != fold), np.flatnonzero(fold_n == fold)
        width = features.f_ND.shape[1] if pool is None else pool.num_features
        head = fit_presence(PresenceHead(width, pairs, C, share, pool), data, features, train)
        p_nE = predict_presence(head, features, position_n, held)
        seen_KE = np.zeros(pairs.pair_KE.shape, dtype=bool)
        inside = position_n[train] >= 0
        np.logical_or.at(seen_KE, position_n[train][inside], known_NE[item_n[train][inside]])
        p_NE[item_n[held]] = np.where((position_n[held] >= 0)[:, None] & seen_KE[position_n[held]], p_nE, np.nan)
    fold_N = np.full(len(data), -1, dtype=np.int64)
    fold_N[item_n] = fold_n
    return p_NE, fold_N


@torch.no_grad()
def predict_presence(
    head: PresenceHead, features: Features, concept_n: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """(n, E) probabilities for rows of `features`, NaN in columns that a row's concept does not have.

    Args:
        head: The head; it takes the features before pooling.
        features: Features.
        concept_n: (len(features.rows),) position of every row's concept in the head, -1 for an unknown one.
        rows: Positions in `features`; None: all.
    """
    chosen = np.arange(len(features.rows)) if rows is None else rows
    parts = [np.zeros((0, head.pairs.pair_KE.shape[1]))]
    for start in range(0, len(chosen), ROWS_AT_ONCE):
        part = chosen[start : start + ROWS_AT_ONCE]
        f_BD = pooled_rows(features.f_ND, head.pool, part).to(head.weight_PD.device)
        logit_BE, mask_BE = head.of_features(f_BD, torch.from_numpy(concept_n[part]).to(f_BD.device))
        parts.append(torch.where(mask_BE, torch.sigmoid(logit_BE.double()), torch.nan).cpu().numpy())
    return np.concatenate(parts)


def pooled_rows(f_ND: np.ndarray, pool: GridPool | None, rows: np.ndarray) -> torch.Tensor:
    """(n, D) pooled float32 features of some rows."""
    checked = checked_features(f_ND)
    parts = []
    for start in range(0, len(rows), ROWS_AT_ONCE):
        f_BD = torch.from_numpy(np.asarray(checked[rows[start : start + ROWS_AT_ONCE]], dtype=np.float32))
        parts.append(f_BD if pool is None else pool(f_BD))
    return torch.cat(parts)


def _batches(f_nD: torch.Tensor, item_n: np.ndarray, head: PresenceHead) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
    index_n = torch.from_numpy(item_n)
    if f_nD.shape[1] != len(head.standardize.mean_D):
        raise ValueError(f"the features have {f_nD.shape[1]} columns, the presence head {len(head.standardize.mean_D)}")
    return zip(f_nD.split(ROWS_AT_ONCE), index_n.split(ROWS_AT_ONCE), strict=True)


def _by_concept(
    pairs: ElementPairs, z_nD: torch.Tensor, target_nE: torch.Tensor, concept_n: np.ndarray
) -> Iterator[_Rows]:
    for k, row in enumerate(pairs.pair_KE):
        own, width = torch.from_numpy(np.flatnonzero(concept_n == k)), int((row >= 0).sum())
        target = target_nE[own, :width]
        if (target != MISSING).any():
            first = int(row[0])
            yield _Rows(z_nD[own].double(), (target > 0).double(), target != MISSING, slice(first, first + width))


def _largest_problem(pairs: ElementPairs, parts: list[_Rows], share: float) -> int:
    """Most rows that have to be solved for together."""
    rows_P = np.zeros(len(pairs.pairs), dtype=np.int64)
    for rows in parts:
        rows_P[rows.pairs] = rows.known_nE.sum(0).numpy()
    return int(rows_P.max() if share == 0 else np.bincount(pairs.name_P, weights=rows_P).max())


def _by_newton(head: PresenceHead, parts: list[_Rows], tol: float) -> float:
    """Every group of pairs that share weights by itself; the largest estimated gap."""
    part_of = {p: (rows, e) for rows in parts for e, p in enumerate(range(rows.pairs.start, rows.pairs.stop))}
    groups: dict[int, list[int]] = {}
    for p in part_of:
        groups.setdefault(int(head.pairs.name_P[p]) if head.share > 0 else p, []).append(p)
    inner = {rows.pairs.start: rows.z_nD @ rows.z_nD.T for rows in parts}
    weight, bias, shared = _zeros(head)
    largest = 0.0
    for group, members in groups.items():
        known = [part_of[p][0].known_nE[:, part_of[p][1]] for p in members]
        pair_R = torch.repeat_interleave(torch.arange(len(members)), torch.tensor([int(k.sum()) for k in known]))
        if len(pair_R) == 0:
            continue
        z = [part_of[p][0].z_nD[k] for p, k in zip(members, known, strict=True)]
        target_R = torch.cat([part_of[p][0].target_nE[k, part_of[p][1]] for p, k in zip(members, known, strict=True)])
        if len(members) == 1:
            gram_RR = (1 + head.share) * inner[part_of[members[0]][0].pairs.start][known[0]][:, known[0]]
        else:
            z_RD = torch.cat(z)
            gram_RR = ((pair_R[:, None] == pair_R) + head.share) * (z_RD @ z_RD.T)
        alpha_R, b_m, gap = newton(RowProblem(head.C * gram_RR, target_R, pair_R, len(members)), tol)
        largest = max(largest, gap)
        for m, p in enumerate(members):
            weight[p] = head.C * (z[m].T @ alpha_R[pair_R == m])
            bias[p] = b_m[m]
            if head.share > 0:
                shared[group] += head.share**0.5 * weight[p]
    _set(head, weight, bias, shared)
    return largest


def _by_lbfgs(head: PresenceHead, parts: list[_Rows], tol: float, max_iter: int) -> float:
    """L-BFGS on (w, u, b) of `head`, starting at 0; the estimated gap."""
    name_P, root, M = head.name_P.cpu(), head.share**0.5, int(head.known_pairs)
    weight, bias, shared = _zeros(head)
    unknown = [weight, bias, shared] if head.share > 0 else [weight, bias]
    optimiser = torch.optim.LBFGS(
        unknown,
        max_iter=1,
        max_eval=25,
        history_size=20,
        tolerance_grad=0,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> float:
        effective = weight + root * shared[name_P] if head.share > 0 else weight
        sigma = torch.sigmoid(bias)
        value = 0.5 * float((softplus(bias) + softplus(-bias)).sum())
        to_weight, to_bias = torch.zeros_like(weight), sigma - 0.5
        for rows in parts:
            logit = rows.z_nD @ effective[rows.pairs].T + bias[rows.pairs]
            bce = binary_cross_entropy_with_logits(logit, rows.target_nE, reduction="none")
            value += float(bce[rows.known_nE].sum())
            residual = torch.where(rows.known_nE, torch.sigmoid(logit) - rows.target_nE, 0.0)
            to_weight[rows.pairs] = residual.T @ rows.z_nD
            to_bias[rows.pairs] += residual.sum(0)
        weight.grad, bias.grad = (to_weight + weight / head.C) / M, to_bias / M
        if head.share > 0:
            shared.grad = (torch.zeros_like(shared).index_add_(0, name_P, root * to_weight) + shared / head.C) / M
        return (value + float(weight.square().sum() + shared.square().sum()) / (2 * head.C)) / M

    gap = float("inf")
    for _ in range(max_iter):
        value = float(optimiser.step(closure))
        gap = _estimated_gap(head.C * M, weight, bias, shared, M) / value
        if gap <= tol:
            break
    _set(head, weight, bias, shared)
    return gap


def _zeros(head: PresenceHead) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(P, D) w, (P,) b and (U, D) u in float64."""
    w, b, u = (torch.zeros(p.shape, dtype=torch.float64) for p in (head.weight_PD, head.bias_P, head.shared_UD))
    return w, b, u


@torch.no_grad()
def _set(head: PresenceHead, weight: torch.Tensor, bias: torch.Tensor, shared: torch.Tensor) -> None:
    head.weight_PD.copy_(weight)
    head.bias_P.copy_(bias)
    head.shared_UD.copy_(shared)


def _estimated_gap(strength: float, weight: torch.Tensor, bias: torch.Tensor, shared: torch.Tensor, M: int) -> float:
    """‖g‖² / 2λ of the penalised weights (a bound), and g_b² / 2h_b of the intercepts with their prior's curvature."""
    assert weight.grad is not None
    assert bias.grad is not None
    square = float(weight.grad.square().sum()) + (0.0 if shared.grad is None else float(shared.grad.square().sum()))
    sigma = torch.sigmoid(bias)
    curvature = (sigma * (1 - sigma) / M).clamp(min=1e-300)
    return square * strength / 2 + float((bias.grad.square() / curvature).sum()) / 2
