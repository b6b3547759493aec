"""How large a study would have to be to tell two models apart.

A difference between two models varies with the images that were drawn, with the participants who answered, and with
what neither of them fixes, judgment by judgment. Resampling images, participants, and both gives three variances from
which the three components follow; a study with other numbers of images and participants has them scaled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri


@dataclass(frozen=True)
class VarianceComponents:
    """Variance of a difference in a study of the present size, by where it comes from.

    Attributes:
        images: What varies from image to image; falls as 1 / images.
        participants: From participant to participant; falls as 1 / participants.
        judgments: From judgment to judgment of one image; falls as 1 / (images × participants who judge each).
    """

    images: float
    participants: float
    judgments: float

    @property
    def total(self) -> float:
        """Variance in a study of the present size."""
        return self.images + self.participants + self.judgments

    def scaled(self, images: float = 1.0, participants: float = 1.0) -> float:
        """Variance with so many times as many images and participants, each participant judging as many per image."""
        return self.images / images + self.participants / participants + self.judgments / (images * participants)


def variance_components(
    over_images: float, over_participants: float = 0.0, over_both: float | None = None
) -> VarianceComponents:
    """Components from the bootstrap variances of the same difference.

    Resampling images takes an image's judgments along, so its variance is images + judgments; that over participants
    is participants + judgments; that over both, with product weights, is images + participants + 3 × judgments (Owen
    2007). Solved for the three; a component that comes out negative is 0, and the others keep their sum with it.
    Without `over_both` the judgments' share cannot be told apart: it is taken as 0, which counts it in both others, a
    variance that is too large rather than too small.

    Args:
        over_images: Variance of the replicates over images.
        over_participants: Over participants; 0 for what participants do not enter (a difference of accuracies).
        over_both: Over both at once, or None.

    Raises:
        ValueError: If a variance is negative or not finite.

    Example:
        >>> variance_components(5.0, 3.0, 10.0)
        VarianceComponents(images=3.0, participants=1.0, judgments=2.0)
    """
    for name, value in (
        ("over_images", over_images),
        ("over_participants", over_participants),
        ("over_both", over_both),
    ):
        if value is not None and not (np.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a variance, finite and not negative, got {value}")
    judgments = 0.0 if over_both is None else over_both - over_images - over_participants
    judgments = float(min(max(judgments, 0.0), over_images, over_participants))
    return VarianceComponents(float(over_images) - judgments, float(over_participants) - judgments, judgments)


def power_of(difference: float, variance: float, alpha: float = 0.05) -> float:
    """Probability that a two-sided normal test of size α tells a difference of this size with this variance.

    Example:
        >>> round(power_of(2.8016, 1.0), 3)
        0.8
    """
    if not np.isfinite(difference) or not np.isfinite(variance):
        return float("nan")
    if variance <= 0:
        return 1.0 if difference else alpha
    shift, limit = abs(difference) / np.sqrt(variance), -ndtri(alpha / 2)
    return float(ndtr(shift - limit) + ndtr(-shift - limit))


@dataclass(frozen=True)
class NeededSize:
    """Study size at which a difference is told with the wanted power; infinite where no number suffices.

    Attributes:
        power: Power of a study of the present size.
        images: Images a concept, participants held as they are (each judges as many sketches of an image as now).
        participants: Participants, images held as they are.
        images_both: Images a concept, where participants grow in proportion.
        participants_both: Those participants.
    """

    power: float
    images: float
    participants: float
    images_both: float
    participants_both: float


def needed_size(
    difference: float,
    components: VarianceComponents,
    images: int,
    participants: int,
    power: float = 0.8,
    alpha: float = 0.05,
) -> NeededSize:
    """Images or participants at which two given models would be told apart.

    The difference is held at its present estimate. That is a guess of the true one, and a winner's guess where models
    were picked because they differ; and an alignment R² is itself less attenuated in a larger study, which this leaves
    out. Two models whose estimates are equal need infinitely many.

    Args:
        difference: θ̂_a - θ̂_b.
        components: Of its variance in the present study.
        images: Images a concept in the present study.
        participants: Participants in the present study.
        power: Wanted probability of telling the difference, in (α, 1).
        alpha: Size of the two-sided test.

    Raises:
        ValueError: If a number is out of range.

    Example:
        >>> size = needed_size(2.8016, VarianceComponents(2.0, 0.0, 0.0), images=16, participants=100)
        >>> size.images, size.participants
        (32.0, inf)
    """
    if not 0 < alpha < power < 1:
        raise ValueError(f"alpha and power must satisfy 0 < alpha < power < 1, got {alpha} and {power}")
    if images < 1 or participants < 0:
        raise ValueError(f"images must be at least 1 and participants at least 0, got {images} and {participants}")
    if not np.isfinite(difference):
        return NeededSize(*[np.nan] * 5)
    # The far tail adds less than alpha / 2 × 1e-3 at power .8 and is left out, so sizes err to the large side.
    wanted = (difference / (ndtri(power) - ndtri(alpha / 2))) ** 2

    def count(factor: float, now: int) -> float:
        return float(np.ceil(factor * now - 1e-6)) if np.isfinite(factor) else np.inf

    per_image, per_person = components.images + components.judgments, components.participants + components.judgments
    both = _larger_root(wanted, components.images + components.participants, components.judgments)
    return NeededSize(
        power=power_of(difference, components.total, alpha),
        images=max(count(_ratio(per_image, wanted - components.participants), images), 1.0),
        participants=max(count(_ratio(per_person, wanted - components.images), participants), 1.0),
        images_both=max(count(both, images), 1.0),
        participants_both=max(count(both, participants), 1.0),
    )


def _ratio(variance: float, left: float) -> float:
    """Factor by which a number must grow so that its share of the variance is what is left for it."""
    return variance / left if left > 0 else (0.0 if variance == 0 and left == 0 else np.inf)


def _larger_root(wanted: float, once: float, twice: float) -> float:
    """The positive x at which once / x + twice / x² = wanted."""
    if wanted == 0:
        return np.inf
    return (once + np.sqrt(once**2 + 4 * wanted * twice)) / (2 * wanted)
