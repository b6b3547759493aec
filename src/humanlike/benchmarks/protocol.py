"""Protocol presets of the SEVA benchmark: one frozen record of named switches, three filled-in copies of it.

The published text, the published analysis code and sound statistics disagree in a dozen places. Each place is
a switch with a name; a preset sets all of them, and a run writes the preset's name and every switch next to
its scores (`DEVIATIONS.md` says what each switch is about).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args, get_type_hints


@dataclass(frozen=True)
class Protocol:
    """Every decision of the SEVA protocol that changes a number.

    Attributes:
        name: Name of the preset the record started from.
        people_accuracy: `first_guess`: share of judgments whose first guess is the target, per sketch, mean
            over the sketches of the cell; `all_labels`: share of all labels (up to 5 a judgment) of the cell
            that are the target.
        people_entropy: `pooled`: entropy of all labels of the cell together; `per_sketch`: plug-in entropy of
            all labels of a sketch, mean over sketches; `per_sketch_chao_shen`: the same with the Chao-Shen
            estimator.
        people_snp: Which answers enter the semantic neighbour preference, and its variant:
            `all_labels_exact`, `first_guess_paper`, `first_guess_exact`.
        model_accuracy: `hard_labels`: share of top-1 labels of the cell that are the target (all presets
            agree).
        model_entropy: `pooled`: entropy of the cell's top-1 labels; `per_sketch`: entropy of the
            probabilities of a sketch, mean over sketches.
        model_snp: Variant of the semantic neighbour preference of the top-1 labels: `exact`, `paper`.
        no_error_cell: Semantic neighbour preference of a cell with answers but none off target: `missing`,
            `one`.
        divergence: Of people's labels on machine-made and human sketches: `distance`, `rank` or `both`.
        cv: Folds of the readout: `stratified` by concept, or `stratified_group`: all items of one image in
            one fold.
        alignment_point: Estimate of an alignment: `full_sample`, or `replicate_mean`, the mean of the
            bootstrap.
        interval: `ratio_centred`, `percentile` (biased down for R²), `basic` or `jackknife`.
        human_baseline: `split_half`, or `split_half_and_spearman_brown`, which shows the corrected ceiling
            beside it.
        stroke_count_model: Random part of strokes ~ time: `intercept` (1 | concept), `slope` (1 + t |
            concept), `standardised_slope` (1 + t_z | concept).
        welch_test: Test of a model's gap to people's consistency: `per_model`, `per_model_with_effect`, or
            `repeated_model`, which repeats one model's statistic for all as the published loop does.
    """

    name: str
    people_accuracy: Literal["first_guess", "all_labels"]
    people_entropy: Literal["pooled", "per_sketch", "per_sketch_chao_shen"]
    people_snp: Literal["all_labels_exact", "first_guess_paper", "first_guess_exact"]
    model_accuracy: Literal["hard_labels"]
    model_entropy: Literal["pooled", "per_sketch"]
    model_snp: Literal["exact", "paper"]
    no_error_cell: Literal["missing", "one"]
    divergence: Literal["distance", "rank", "both"]
    cv: Literal["stratified", "stratified_group"]
    alignment_point: Literal["full_sample", "replicate_mean"]
    interval: Literal["ratio_centred", "percentile", "basic", "jackknife"]
    human_baseline: Literal["split_half", "split_half_and_spearman_brown"]
    stroke_count_model: Literal["intercept", "slope", "standardised_slope"]
    welch_test: Literal["per_model", "per_model_with_effect", "repeated_model"]

    def __post_init__(self) -> None:
        for switch, allowed in switch_values().items():
            value = getattr(self, switch)
            if value not in allowed:
                raise ValueError(f"protocol switch {switch} is {value!r}; {_nearest(value, allowed)}")

    @property
    def switches(self) -> dict[str, str]:
        """Switch name → value, without the preset's name."""
        values = asdict(self)
        del values["name"]
        return values

    def overridden(self, switches: Mapping[str, Any]) -> Protocol:
        """The protocol with some switches set by hand; a value of None keeps the preset's.

        Raises:
            ValueError: On a switch that does not exist, or a value it cannot take, with the nearest that it
                can.

        Example:
            >>> preset("paper_code").overridden({"interval": "jackknife", "cv": None}).interval
            'jackknife'
        """
        known = tuple(switch_values())
        for switch in switches:
            if switch not in known:
                raise ValueError(f"there is no protocol switch {switch!r}; {_nearest(switch, known)}")
        return replace(self, **{k: v for k, v in switches.items() if v is not None})

    def record(self) -> dict[str, Any]:
        """What a result stores: the preset, every switch, and which switches differ from the preset."""
        original = preset(self.name).switches
        changed = sorted(k for k, v in self.switches.items() if v != original[k])
        return {"preset": self.name, **self.switches, "overridden": changed}


@cache
def switch_values() -> Mapping[str, tuple[str, ...]]:
    """Switch name → the values it can take, read from the annotations of `Protocol`."""
    hints = get_type_hints(Protocol)
    return MappingProxyType({f.name: get_args(hints[f.name]) for f in fields(Protocol) if f.name != "name"})


def _nearest(value: object, allowed: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(str(value), allowed, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}It can be one of {', '.join(allowed)}"


PAPER_TEXT = Protocol(
    name="paper_text",
    people_accuracy="all_labels",
    people_entropy="pooled",
    people_snp="all_labels_exact",
    model_accuracy="hard_labels",
    model_entropy="pooled",
    model_snp="exact",
    no_error_cell="missing",
    divergence="distance",
    cv="stratified",
    alignment_point="full_sample",
    interval="percentile",
    human_baseline="split_half",
    stroke_count_model="intercept",
    welch_test="per_model",
)
"""What the text of the paper says."""

PAPER_CODE = replace(
    PAPER_TEXT,
    name="paper_code",
    people_accuracy="first_guess",
    people_entropy="per_sketch",
    people_snp="first_guess_paper",
    model_entropy="per_sketch",
    model_snp="paper",
    no_error_cell="one",
    divergence="rank",
    alignment_point="replicate_mean",
    stroke_count_model="slope",
    welch_test="repeated_model",
)
"""What the authors' released analysis computes; the published numbers come from this one."""

CORRECTED = replace(
    PAPER_CODE,
    name="corrected",
    people_entropy="per_sketch_chao_shen",
    people_snp="first_guess_exact",
    model_snp="exact",
    no_error_cell="missing",
    divergence="both",
    cv="stratified_group",
    alignment_point="full_sample",
    interval="ratio_centred",
    human_baseline="split_half_and_spearman_brown",
    stroke_count_model="standardised_slope",
    welch_test="per_model_with_effect",
)
"""The default: the same measurements on one scale for people and models, with intervals that cover."""

PRESETS: Mapping[str, Protocol] = {p.name: p for p in (PAPER_TEXT, PAPER_CODE, CORRECTED)}


def preset(name: str) -> Protocol:
    """The protocol preset called `name`.

    Raises:
        ValueError: When there is none of that name; the sentence says which is nearest.

    Example:
        >>> preset("corrected").interval
        'ratio_centred'
    """
    if name not in PRESETS:
        raise ValueError(f"there is no protocol {name!r}; {_nearest(name, tuple(PRESETS))}")
    return PRESETS[name]
