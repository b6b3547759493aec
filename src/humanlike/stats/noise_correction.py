"""Alignment with what people's cells would be without the noise of a finite number of judgments.

People's cell y is its true value y* (of the same images, judged by all people there are) plus noise of the judgments,
which a model's cells cannot know. Noise adds to the variance of y and not to what the model explains, so

    R²(y* | model) = R²(y | model) · var(y) / var(y*) = R² / reliability,

and the reliability of people's cells is 2r/(1+r), r the correlation of the cells of two random halves of the
participants on the same images (Spearman-Brown); with κ in place of 2, κr/(1 + (κ-1)r), where half of the people are
more than twice as noisy because a sketch's judgments fall unequally on the halves (`SplitHalf.reliability`). 1 is what
a model reaches whose cells determine people's true cells. The model's own cells are taken as they are: noise in them
(16 hard labels a cell) is not corrected.

It fails, and how:

* Noise that depends on the model breaks the formula, for example people's answers chosen by the model's.
* Sketches that nobody in a half judged make the halves differ by more than noise: with three judgments a sketch or
  fewer, r falls short and the correction is somewhat too large.
* A bias that depends on the number of judgments (entropy of few answers) is not noise: halves share it, it counts as
  reliable, and stays in.
* Cells that the model lacks are in the reliability and not in the R².
* Below a reliability of `LEAST_RELIABILITY` the noise of R² would be multiplied tenfold, and nothing is given.
* The ratio of two estimates may exceed 1; it is not clipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanlike.stats.consistency import SplitHalf
from humanlike.stats.intervals import Interval, ratio_centred

LEAST_RELIABILITY = 0.1


@dataclass(frozen=True)
class CorrectedR2:
    """An R² divided by the reliability of people's cells.

    Attributes:
        value: R² / reliability, NaN below `LEAST_RELIABILITY`.
        interval: From the replicates, ratio-centred; NaN ends where people's halves were not resampled.
        reliability: `SplitHalf.reliability` of people's cells.
        replicates_B: Replicates of R² / replicates of the reliability, NaN where degenerate.
    """

    value: float
    interval: Interval
    reliability: float
    replicates_B: np.ndarray


def noise_corrected(r2: float, r2_B: np.ndarray, consistency: SplitHalf, level: float = 0.95) -> CorrectedR2:
    """The noise-corrected R² beside an attenuated one, with an interval for both sources of uncertainty.

    Args:
        r2: Alignment on the full sample.
        r2_B: (B,) its replicates.
        consistency: People's halves, computed again on the same resamples.
        level: Coverage of the interval.

    Raises:
        ValueError: If the replicates of the two differ in number.

    References:
        Spearman 1904 (American Journal of Psychology 15), correction for attenuation, here on one side only.

    Example:
        >>> half = SplitHalf(np.array([0.5]), np.array([0.6]), np.array([0.6, 0.6]))
        >>> round(noise_corrected(0.6, np.array([0.5, 0.6]), half).value, 6)
        0.8
    """
    reliability = consistency.reliability
    values_B = np.asarray(r2_B, np.float64)
    if consistency.correlation_B is None:
        replicates_B = np.full(values_B.shape, np.nan)
    else:
        reliability_B = consistency.reliability_B
        if reliability_B.shape != values_B.shape:
            raise ValueError(f"R² has {values_B.shape} replicates and people's halves {reliability_B.shape}")
        usable = reliability_B >= LEAST_RELIABILITY
        replicates_B = np.where(usable, values_B / np.where(usable, reliability_B, 1.0), np.nan)
    value = r2 / reliability if reliability >= LEAST_RELIABILITY else np.nan
    return CorrectedR2(float(value), ratio_centred(value, replicates_B, level), float(reliability), replicates_B)
