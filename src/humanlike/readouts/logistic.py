"""The readout of the SEVA protocol: multinomial logistic regression, all folds solved together, with a certificate."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any, Literal

import numpy as np
import torch

from humanlike.readouts.certificate import Certificate, certify
from humanlike.readouts.folds import SmallClassError, groups_per_class, stratified_folds, stratified_group_folds
from humanlike.readouts.lbfgs import Path, minimise
from humanlike.readouts.objective import FoldedProblem
from humanlike.readouts.preconditioner import starting_preconditioner
from humanlike.readouts.problem import checked_features, checked_labels, folded_problem
from humanlike.readouts.workers import Each, workers

CHUNK_ROWS = 8192
SMALL_PASS_FLOPS = 2e10  # about 0.3 s on one core
PROGRESS_S = 10.0


class ConvergenceWarning(UserWarning):
    """A readout stopped farther from its optimum than is accepted."""


class LogisticReadout:
    """Multinomial logistic regression on features, cross-validated, run to its optimum.

    The objective is scikit-learn's: C·Σ cross-entropy + ½‖W‖², the intercept not penalised, W on features
    standardised with the mean and standard deviation of the *training* rows (constant features get no weight). Only
    labels that occur are fitted; the others have probability exactly 0, because a softmax over absent labels with a
    free intercept has no optimum. Training runs in float32, is finished in float64 where float32 is not enough, and
    every fit carries an upper bound of its relative distance to the optimum (`gap_`, see `readouts.certificate`). Small
    problems are solved by one torch thread whatever the setting, which is restored; long ones write a line to standard
    error every ten seconds.

    Folds with `cv="stratified_group"` depend on seed, labels and group names only, so that the order of the rows does
    not matter. Without groups every row is its own group, named by its position.

    Args:
        C: Inverse strength of the penalty, > 0.
        n_splits: Number of folds.
        cv: "stratified_group" (groups never on both sides of a fold) or "stratified" (groups are ignored).
        standardize: Standardise features inside the training rows.
        solver: "lbfgs". For data that does not fit in memory see `readouts.linear_probe`.
        tol: Relative gap asked for.
        accept: Relative gap that still counts as converged; beyond it a ConvergenceWarning is given and `converged_` is
            False for the fold.
        max_iter: Passes over the rows, at most, in each of the two precisions.
        seed: Seed of the folds.
        small_class: What to do when a class has fewer groups (or items) than folds: "raise", or "reduce" the number of
            folds to that of the smallest class; the certificate then says so (`n_splits_reduced_from`).
        device: Where to compute, for example "cpu" or "cuda".
        train_on: Which sketches a benchmark fits the readout on: "recognition_set", those that people judged and that
            are scored, or "all" that the data set holds. The benchmark applies it.

    Attributes:
        objective_: Objective reached, in scikit-learn's scale; (F,) after `out_of_fold_proba`, a number after `fit`,
            as are the next four.
        gap_: Upper bound of the relative gap to the optimum.
        grad_norm_: ‖∇F‖₂ of the mean objective F = objective / (C n).
        n_iter_: L-BFGS steps.
        converged_: gap_ ≤ accept.
        folds_: (N,) fold of every row, after `out_of_fold_proba`.
        classes_, coef_, intercept_: After `fit`: (K,) labels that occur, (K, D) and (K,) weights for raw features.

    Example:
        >>> f_ND = np.array([[0.0], [1.0], [0.2], [0.9], [0.1], [1.1], [0.3], [0.8]])
        >>> label_N = np.array([0, 2, 0, 2, 0, 2, 0, 2])
        >>> p_NL = LogisticReadout(n_splits=2).out_of_fold_proba(f_ND, label_N, num_labels=3)
        >>> p_NL.argmax(1).tolist(), p_NL[:, 1].tolist()
        ([0, 2, 0, 2, 0, 2, 0, 2], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """

    def __init__(
        self,
        C: float = 1.0,
        n_splits: int = 5,
        cv: Literal["stratified_group", "stratified"] = "stratified_group",
        standardize: bool = True,
        solver: Literal["lbfgs"] = "lbfgs",
        tol: float = 1e-7,
        accept: float = 1e-6,
        max_iter: int = 1000,
        seed: int = 0,
        small_class: Literal["raise", "reduce"] = "raise",
        device: str = "cpu",
        train_on: Literal["recognition_set", "all"] = "recognition_set",
    ) -> None:
        _check_choice("train_on", train_on, ("recognition_set", "all"))
        _check_choice("cv", cv, ("stratified_group", "stratified"))
        _check_choice("small_class", small_class, ("raise", "reduce"))
        if solver != "lbfgs":
            raise ValueError(
                f"solver is {solver!r}; LogisticReadout has lbfgs only (train.py task=readout streams with SGD)"
            )
        if not (np.isfinite(C) and C > 0):
            raise ValueError(f"C, the inverse strength of the penalty, must be a positive number, got {C}")
        if not 0 < tol <= accept:
            raise ValueError(f"tol must be positive and at most accept, got tol={tol}, accept={accept}")
        if max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {max_iter}")
        self.C, self.n_splits, self.cv, self.standardize, self.solver = float(C), n_splits, cv, standardize, solver
        self.tol, self.accept, self.max_iter, self.seed = tol, accept, max_iter, seed
        if torch.device(device).type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"readout.device={device} asks for a GPU, and torch finds none; use readout.device=cpu")
        self.small_class, self.device, self.train_on = small_class, device, train_on

    def out_of_fold_proba(
        self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int, group_N: np.ndarray | None = None
    ) -> np.ndarray:
        """Probabilities of every row from the fit that never saw the row's fold.

        Args:
            f_ND: (N, D) features, finite.
            label_N: (N,) label index of every row.
            num_labels: L.
            group_N: (N,) source of every row (photograph, drawing); with `cv="stratified_group"` rows of one source are
                always in one fold. None: every row is its own source.

        Returns:
            (N, L) float32; rows sum to 1, columns of absent labels are exactly 0.

        Raises:
            ValueError: For non-finite features (row and column named), labels outside 0 … L-1, one class only, or a
                class too small for the folds.
        """
        f_ND, label_N = self._checked(f_ND, label_N, num_labels)
        present_K, class_N = np.unique(label_N, return_inverse=True)
        fold_N, reduced_from = self._folds(label_N, group_N)
        problem, order_N, _, _ = folded_problem(f_ND, class_N, fold_N, self.C, self.standardize, self.device)
        fits = self._solve(problem, reduced_from)
        self.folds_ = fold_N
        p_NL = np.zeros((len(f_ND), num_labels), dtype=np.float32)
        for block in problem.blocks:
            logit_BK = problem.logits(block.fold, fits[block.fold].theta, [block])
            p_NL[np.ix_(order_N[block.start : block.stop], present_K)] = torch.softmax(logit_BK, 1).cpu().numpy()
        return p_NL

    def fit(self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int) -> LogisticReadout:
        """Fit on all rows; arguments and errors as in `out_of_fold_proba`."""
        f_ND, label_N = self._checked(f_ND, label_N, num_labels)
        self.classes_, class_N = np.unique(label_N, return_inverse=True)
        problem, _, mean_D, scale_D = folded_problem(f_ND, class_N, None, self.C, self.standardize, self.device)
        (fit,) = self._solve(problem, None)
        shared_EK = problem.on_shared_rows(0, fit.theta).cpu().numpy()
        self.coef_ = (shared_EK[:-1] / scale_D[:, None]).T
        self.intercept_ = shared_EK[-1] - self.coef_ @ mean_D
        self._shared_EK, self._mean_D, self._scale_D, self._num_labels = shared_EK, mean_D, scale_D, num_labels
        for name in ("objective_", "gap_", "grad_norm_", "n_iter_", "converged_"):
            setattr(self, name, getattr(self, name)[0].item())
        return self

    def predict_proba(self, f_ND: np.ndarray) -> np.ndarray:
        """(N, L) float32 probabilities from `fit`; labels that were absent from it are exactly 0.

        Raises:
            RuntimeError: Before `fit`.
            ValueError: For non-finite features, or another number of features than in `fit`.
        """
        if not hasattr(self, "_shared_EK"):
            raise RuntimeError("predict_proba needs a fitted readout; call fit(f_ND, label_N, num_labels) first")
        f_ND = checked_features(f_ND)
        if f_ND.shape[1] != len(self._mean_D):
            raise ValueError(f"f_ND has {f_ND.shape[1]} features; the readout was fitted on {len(self._mean_D)}")
        p_NL = np.zeros((len(f_ND), self._num_labels), dtype=np.float32)
        for start in range(0, len(f_ND), CHUNK_ROWS):
            z_BD = (f_ND[start : start + CHUNK_ROWS] - self._mean_D) / self._scale_D
            logit_BK = z_BD @ self._shared_EK[:-1] + self._shared_EK[-1]
            odds_BK = np.exp(logit_BK - logit_BK.max(1, keepdims=True))
            p_NL[start : start + CHUNK_ROWS, self.classes_] = odds_BK / odds_BK.sum(1, keepdims=True)
        return p_NL

    def certificate(self) -> dict[str, Any]:
        """What a score record keeps of the last fit: settings, folds used, and how close to the optimum it came.

        Raises:
            RuntimeError: Before any fit.
        """
        if not hasattr(self, "_record"):
            raise RuntimeError("there is no certificate yet; call out_of_fold_proba or fit first")
        return dict(self._record)

    def _checked(self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int) -> tuple[np.ndarray, np.ndarray]:
        f_ND = checked_features(f_ND)
        return f_ND, checked_labels(label_N, len(f_ND), num_labels)

    def _folds(self, label_N: np.ndarray, group_N: np.ndarray | None) -> tuple[np.ndarray, int | None]:
        """(N,) folds, and the number of folds that was asked for if it had to be reduced."""
        grouped = self.cv == "stratified_group"
        groups_N = np.arange(len(label_N)) if group_N is None or not grouped else np.asarray(group_N)
        if len(groups_N) != len(label_N):
            raise ValueError(f"group_N must name the source of each of the {len(label_N)} rows, got {len(groups_N)}")
        n_splits, reduced_from = self.n_splits, None
        if self.small_class == "reduce":
            classes_N = np.unique(label_N, return_inverse=True)[1]
            smallest = int(groups_per_class(classes_N, np.unique(groups_N, return_inverse=True)[1]).min())
            if 2 <= smallest < n_splits:
                n_splits, reduced_from = smallest, self.n_splits
        try:
            if grouped:
                return stratified_group_folds(label_N, groups_N, n_splits, self.seed), reduced_from
            return stratified_folds(label_N, n_splits, self.seed), reduced_from
        except SmallClassError as error:
            raise error.worded(otherwise="small_class=reduce") from None

    def _solve(self, problem: FoldedProblem, reduced_from: int | None) -> list[Certificate]:
        """Every model's optimum: float32 first, float64 for those whose certificate asks for more."""
        started = time.perf_counter()
        threads = _suitable_threads(problem)
        with workers(threads) as each:
            fits, iterations = self._optima(problem, each)
        self._report(problem, fits, iterations)
        self._record["n_splits_reduced_from"] = reduced_from
        self._record["threads"] = threads
        self._record["seconds"] = time.perf_counter() - started
        return fits

    def _optima(self, problem: FoldedProblem, each: Each) -> tuple[list[Certificate], list[int]]:
        """Fit and L-BFGS steps of every model."""
        first = starting_preconditioner(problem)
        paths = {m: Path(m, _start(problem, m), first) for m in range(problem.num_models)}
        fits: dict[int, Certificate] = {}
        iterations = dict.fromkeys(paths, 0)
        progress = _Progress(self.tol)
        for dtype in (torch.float32, torch.float64):
            if dtype == torch.float64:
                paths = {m: path.resumed(fits[m].theta) for m, path in paths.items() if fits[m].gap > self.tol}
            minimise(problem, paths, self.tol / 2, self.max_iter, progress, each)
            certificates = each(lambda path: certify(problem, path.model, path.theta), paths.values())
            for (m, path), fit in zip(paths.items(), certificates, strict=True):
                iterations[m] += path.iterations
                fits[m] = fit
        return [fits[m] for m in range(problem.num_models)], [iterations[m] for m in range(problem.num_models)]

    def _report(self, problem: FoldedProblem, fits: list[Certificate], iterations: list[int]) -> None:
        """Set the attributes and the record, and warn of models that are not close enough."""
        self.objective_ = np.array([fit.objective for fit in fits])
        self.gap_ = np.array([fit.gap for fit in fits])
        self.grad_norm_ = np.array([fit.grad_norm for fit in fits])
        self.n_iter_ = np.array(iterations)
        self.converged_ = self.gap_ <= self.accept
        self._record = {
            "solver": self.solver,
            "C": self.C,
            "cv": self.cv,
            "standardize": self.standardize,
            "seed": self.seed,
            "tol": self.tol,
            "accept": self.accept,
            "n_splits": len(fits),
            "num_classes": problem.num_classes,
            "num_features": int(problem.z_ND.shape[1]),
            "num_constant_features": int((problem.z_ND == 0).all(0).sum()),
            "train_sizes": [problem.train_size(m) for m in range(len(fits))],
            "objective": self.objective_.tolist(),
            "gap": self.gap_.tolist(),
            "max_gap": float(self.gap_.max()),
            "grad_norm": self.grad_norm_.tolist(),
            "bias_grad_norm": [fit.bias_grad_norm for fit in fits],
            "n_iter": self.n_iter_.tolist(),
            "converged": bool(self.converged_.all()),
        }
        if not self.converged_.all():
            warnings.warn(
                f"the readout did not converge in {int((~self.converged_).sum())} of {len(fits)} fits: the relative "
                f"gap to the optimum is up to {self.gap_.max():.1e}, accepted is {self.accept:.1e}; raise max_iter "
                f"(now {self.max_iter}), lower C, or read the scores with that in mind",
                ConvergenceWarning,
                stacklevel=4,
            )


class _Progress:
    """One line on standard error every ten seconds of a solve; nothing for shorter ones."""

    def __init__(self, tol: float) -> None:
        self._tol, self._passes = tol, 0
        self._started = self._last = time.monotonic()

    def __call__(self, gap: float) -> None:
        self._passes += 1
        now = time.monotonic()
        if now - self._last >= PROGRESS_S:
            self._last = now
            known = f"estimated gap at most {gap:.0e}" if np.isfinite(gap) else "far from the optimum"
            print(
                f"readout {self._passes} passes, {known} (asked {self._tol:.0e}), {now - self._started:.0f} s",
                file=sys.stderr,
                flush=True,
            )


def _suitable_threads(problem: FoldedProblem) -> int:
    """Number of threads: one for small problems and on a GPU, torch's present setting otherwise."""
    small = problem.z_ND.device.type != "cpu" or problem.pass_flops < SMALL_PASS_FLOPS
    return 1 if small else torch.get_num_threads()


def _start(problem: FoldedProblem, model: int) -> torch.Tensor:
    """(D+1, K) zeros with the logarithms of the class shares as intercept: the optimum for W = 0."""
    y_N = torch.cat([problem.y_N[b.start : b.stop] for b in problem.train_blocks(model)])
    theta = torch.zeros(problem.z_ND.shape[1] + 1, problem.num_classes, device=y_N.device)
    theta[-1] = (torch.bincount(y_N, minlength=problem.num_classes).float() / len(y_N)).log()
    return theta


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
