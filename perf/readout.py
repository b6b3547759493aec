"""Speed of the readout against scikit-learn's lbfgs in float64 at tol 1e-7, on synthetic features.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python perf/readout.py --items 10000 --features 512
    ... python perf/readout.py --items 3000 --features 1280 --classes 48 --signal 2   # separable, as real features are
    ... python perf/readout.py --items 89797 --features 768 --folds 0 --threads 2     # all of SEVA, the readout alone

Both fit the same training folds, in turn, in one process; the ratio is of CPU seconds a fold. scikit-learn fits
`--folds` of the five folds (they cost about the same), the readout always solves all five together.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from humanlike.readouts import LogisticReadout
from humanlike.rng import generator


def synthetic_features(
    items: int, features: int, classes: int, seed: int, signal: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """ReLU features with a power-law spectrum, and class signal whose strength varies from sketch to sketch.

    `signal` scales it. With 10,000 items of 128 classes .37 gives accuracies of about .29, .36 and .51 at 512, 768 and
    2,048 features, as networks have on sketches; 1 gives .70, .75 and .84; at 2 nearly all are told apart.
    """
    rng = generator(seed, "perf", "readout", items, features, classes)
    label_N = np.arange(items) % classes
    spectrum_D = np.arange(1, features + 1) ** -0.5
    rotation_DD = np.linalg.qr(rng.normal(size=(features, features)))[0]
    signal_KD = rng.normal(size=(classes, features)) * spectrum_D
    strength_N1 = signal * rng.choice([0.15, 0.3, 0.6, 1.0], size=(items, 1))
    f_ND = np.empty((items, features), dtype=np.float32)
    for start in range(0, items, 4096):  # all at once would take more memory than the readout, whose peak is measured
        rows = slice(start, start + 4096)
        hidden_BD = rng.normal(size=(len(label_N[rows]), features)) * spectrum_D
        hidden_BD += strength_N1[rows] * signal_KD[label_N[rows]]
        f_ND[rows] = np.maximum(hidden_BD @ rotation_DD, 0)
    return f_ND, label_N


def fit_reference(f_ND: np.ndarray, label_N: np.ndarray, train_N: np.ndarray) -> tuple[float, float, np.ndarray]:
    """CPU seconds and objective of scikit-learn on the training rows, and its predictions of the others."""
    start = time.process_time()
    x_ND = f_ND[train_N].astype(np.float64)
    mean_D, scale_D = x_ND.mean(0), x_ND.std(0)
    scale_D[scale_D == 0] = 1.0
    x_ND = (x_ND - mean_D) / scale_D
    model = LogisticRegression(C=1.0, tol=1e-7, max_iter=10_000).fit(x_ND, label_N[train_N])
    seconds = time.process_time() - start
    own_N = model.predict_log_proba(x_ND)[np.arange(len(x_ND)), label_N[train_N]]
    objective = -own_N.sum() + 0.5 * np.square(model.coef_).sum()
    return seconds, float(objective), model.predict((f_ND[~train_N] - mean_D) / scale_D)


def alone(f_ND: np.ndarray, label_N: np.ndarray, classes: int, seed: int) -> None:
    """Measure the readout without a reference: wall time, CPU time, peak memory of the process, and the certificate."""
    readout = LogisticReadout(seed=seed)
    start, cpu = time.perf_counter(), time.process_time()
    p_NL = readout.out_of_fold_proba(f_ND, label_N, classes)
    print(
        f"N={len(f_ND)} D={f_ND.shape[1]} K={classes}, five folds on {torch.get_num_threads()} thread(s): "
        f"{time.perf_counter() - start:.0f} s, {time.process_time() - cpu:.0f} CPU s ({readout.n_iter_.max()} steps), "
        f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB;  certified gap ≤ "
        f"{readout.gap_.max():.1e}, accuracy {(p_NL.argmax(1) == label_N).mean():.4f}"
    )


def main() -> None:
    """Measure and print one line a round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--classes", type=int, default=128)
    parser.add_argument("--folds", type=int, default=1, help="folds that scikit-learn fits, of 5")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--signal", type=float, default=0.37, help="strength of the classes in the features")
    parser.add_argument("--threads", type=int, default=1, help="of the readout and of scikit-learn")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    f_ND, label_N = synthetic_features(options.items, options.features, options.classes, options.seed, options.signal)
    if not options.folds:
        alone(f_ND, label_N, options.classes, options.seed)
        return
    ratios = []
    for turn in range(options.rounds):
        readout = LogisticReadout(seed=options.seed)
        start = time.process_time()
        p_NL = readout.out_of_fold_proba(f_ND, label_N, options.classes)
        ours = (time.process_time() - start) / 5
        theirs, excess, agreement = [], [], []
        for fold in range(options.folds):
            train_N = readout.folds_ != fold
            with threadpool_limits(
                options.threads
            ):  # threads that wait spinning would be counted against the reference
                seconds, objective, predicted = fit_reference(f_ND, label_N, train_N)
            theirs.append(seconds)
            excess.append(readout.objective_[fold] / objective - 1)
            agreement.append(float((p_NL[~train_N].argmax(1) == predicted).mean()))
        ratios.append(float(np.mean(theirs)) / ours)
        print(
            f"round {turn + 1}: N={options.items} D={options.features} K={options.classes}  "
            f"readout {ours:.2f} CPU s/fold ({readout.n_iter_.max()} steps), scikit-learn {np.mean(theirs):.2f}, "
            f"ratio {ratios[-1]:.2f};  certified gap ≤ {readout.gap_.max():.1e}, objective against scikit-learn "
            f"{np.max(np.abs(excess)):.1e}, agreement {np.mean(agreement):.4f}, "
            f"accuracy {(p_NL.argmax(1) == label_N).mean():.4f}"
        )
    print(f"ratio min {min(ratios):.2f}  median {np.median(ratios):.2f}  max {max(ratios):.2f}")


if __name__ == "__main__":
    main()
