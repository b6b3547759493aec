"""The words of a report: titles and meanings of scores, sentences for flags, numbers as text.

Tables, figures, the HTML page and dashboards all take their words from here. A score or flag that is not listed is
written as its name with the underscores opened, so that a new benchmark needs no entry to be readable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from humanlike.reports import generation_wording, sea_wording
from humanlike.types import Score, ScoreValue

MISSING = "–"
SIMULATED = "simulated_participants"
_PEOPLE = "_people"

_METRICS = {"accuracy": "accuracy", "entropy": "entropy", "snp": "SNP"}

TITLES: Mapping[str, str] = {
    "msen_paper": "MSEₙ (paper)",
    "msen_v2": "MSEₙ (v2)",
    "msen_paper_text": "MSEₙ (paper text)",
    "test_accuracy": "Accuracy after one view",
    "p_null": "p of a perfect model",
    "early_accuracy": "Accuracy early in learning",
    "late_accuracy": "Accuracy late in learning",
    "consistency": "Consistency",
    "accuracy": "Accuracy",
    "entropy": "Response entropy",
    "snp": "Semantic neighbour preference",
    "jsd": "Jensen-Shannon distance",
    "alignment_accuracy": "Alignment, accuracy",
    "alignment_entropy": "Alignment, entropy",
    "alignment_snp": "Alignment, SNP",
    "alignment_accuracy_corrected": "Alignment freed of noise, accuracy",
    "alignment_entropy_corrected": "Alignment freed of noise, entropy",
    "alignment_snp_corrected": "Alignment freed of noise, SNP",
    "delta_r2_accuracy": "ΔR² over condition, accuracy",
    "delta_r2_entropy": "ΔR² over condition, entropy",
    "delta_r2_snp": "ΔR² over condition, SNP",
    "nested_alignment_accuracy": "Alignment of the chosen layer, accuracy",
    "nested_alignment_entropy": "Alignment of the chosen layer, entropy",
    "nested_alignment_snp": "Alignment of the chosen layer, SNP",
    **{f"consistency_{m}": f"People's split-half R², {name}" for m, name in _METRICS.items()},
    **{f"consistency_{m}_spearman_brown": f"People's Spearman-Brown, {name}" for m, name in _METRICS.items()},
    **{f"gap_{m}": f"Gap to people's consistency, {name}" for m, name in _METRICS.items()},
    **{f"welch_t_{m}": f"Welch's t of that gap, {name}" for m, name in _METRICS.items()},
    "error_consistency": "Error consistency",
    "observed_consistency": "Observed consistency",
    "accuracy_difference": "Accuracy, model − people",
    "n_items": "Items",
    "n_cells": "Cells",
    "n_responses": "Responses",
    **sea_wording.TITLES,
    **generation_wording.TITLES,
}

SHORT_TITLES: Mapping[str, str] = {
    "entropy": "Entropy",
    "snp": "SNP",
    "jsd": "JS distance",
    "early_accuracy": "Early accuracy",
    "late_accuracy": "Late accuracy",
    "test_accuracy": "After one view",
    "p_null": "p, null test",
    "delta_r2_accuracy": "ΔR², accuracy",
    "delta_r2_entropy": "ΔR², entropy",
    "delta_r2_snp": "ΔR², SNP",
    **sea_wording.SHORT_TITLES,
}

SMALL = ("msen", "noise_floor", "random_guess")
"""What the names of squared errors begin with."""

MEANINGS: Mapping[str, str] = {
    "object_learning/accuracy": "share of correct choices over all trials and subtasks",
    "accuracy": "share of sketches given the label of their concept",
    "entropy": "spread of the labels given; 0 when all answers agree",
    "snp": "how close in meaning the wrong answers are; 1 is as close as can be",
    "jsd": "distance between the model's and people's label distributions; 0 when they are the same",
    "msen_paper": "squared error of learning curves, the model's noise taken off; the noise floor is the lowest",
    "msen_v2": "the same by the authors' current code: people's noise taken off too, so that 0 is the lowest",
    "msen_paper_text": "the same as the paper's words have it",
    "lapse_rate": "share of answers made at random that fits people best",
    "noise_floor": "what a perfect model is expected to score by the paper's code: people's own sampling noise",
    "p_null": "how often a model that learns exactly as people do scores as badly by chance",
    "consistency": "rank correlation (ρ) of subtasks' difficulty for model and people",
    "early_accuracy": "trials 2 to 6, after 1 to 5 images",
    "late_accuracy": "trials 95 to 100",
    "test_accuracy": "mean over transformations and levels; people's is corrected for lapses",
    "alignment_accuracy": "adjusted R² of people's cell accuracies predicted from the model's",
    "alignment_entropy": "adjusted R² of people's cell entropies predicted from the model's",
    "alignment_snp": "adjusted R² of people's neighbour preference predicted from the model's",
    "delta_r2_accuracy": "what the model adds to R² when the condition is known already",
    "delta_r2_entropy": "what the model adds to R² when the condition is known already",
    "alignment_accuracy_corrected": "the alignment with people's answers freed of their sampling noise; can exceed 1",
    "alignment_entropy_corrected": "the alignment with people's answers freed of their sampling noise; can exceed 1",
    "alignment_snp_corrected": "the alignment with people's answers freed of their sampling noise; can exceed 1",
    "delta_r2_snp": "what the model adds to R² when the condition is known already",
    "nested_alignment_accuracy": "the same for a layer chosen on other concepts than it is measured on",
    "nested_alignment_entropy": "the same for a layer chosen on other concepts than it is measured on",
    "nested_alignment_snp": "the same for a layer chosen on other concepts than it is measured on",
    "error_consistency": "agreement with people on which sketches are got right, beyond chance (κ)",
    "observed_consistency": "share of images on which model and person are both right or both wrong",
    "accuracy_difference": "how much more often than a person the model is right on what the person saw",
    **sea_wording.MEANINGS,
    **generation_wording.MEANINGS,
}

UNITS: Mapping[str, str] = {
    "nats": "nats",
    "bits": "bits",
    "R2": "R²",
    "kappa": "κ",
    "rho": "ρ",
    "share": "",
    "sqrt(nats)": "√nats",
    **sea_wording.UNITS,
}

FLAG_SENTENCES: Mapping[str, str] = {
    SIMULATED: "The “people” are a simulation. Nothing on this page says anything about human beings.",
    "no_people": "The data set has no human responses: every comparison with people is missing.",
    "no_semantic_space": "There is no semantic space for the labels: neighbour preference is missing.",
    "single_condition": "There is one condition only: nothing can be said about change with budget.",
    "folds_reduced": "The smallest class has only {count} sources, so the readout used {count} folds.",
    "readout_not_converged": "The readout stopped short of its optimum; its scores may still move.",
    "images_failed": "{count} image(s) could not be read and are left out of every score.",
    "empty_cells": "{count} cell(s) (concept × condition) are empty and left out.",
    "labels_without_embedding": "{count} label(s) have no row in the semantic space; answers with them are not ranked.",
    "answers_not_ranked": "{count} answer(s) of the model have no neighbour rank and are left out of that score.",
    "people_answers_not_ranked": "{count} answer(s) of people have no neighbour rank and are left out of that score.",
    "items_without_judgments": "{count} item(s) were judged by nobody; comparisons with people leave them out.",
    "one_participant": "One person gave all the answers: how far people agree with each other is unknown.",
    "cells_dropped_accuracy": "{count} cell(s) lack an accuracy on one side and are left out of its alignment.",
    "cells_dropped_entropy": "{count} cell(s) lack an entropy on one side and are left out of its alignment.",
    "cells_dropped_snp": "{count} cell(s) hold no wrong answer of the model or of people, so no neighbour preference.",
    "derived_conditions": "The conditions are stages of the same drawings, so folds keep each drawing together.",
    "cv_grouped": "Folds keep items of one source together although the protocol asked for plain folds: {count}.",
    "images_shared_across_folds": "Items of one source stand on both sides of a fold, which flatters the model.",
    "people_answers_missing": "{count} answer(s) of people did not come in time; they count as wrong.",
    "answers_missing": "{count} answer(s) of the model are missing; they count as wrong.",
    "items_without_trial": "{count} item(s) were not answered by the model and are left out of every score.",
    "recorded_answers": "The model is known by one answer an item: how spread its answers are is unknown, and its "
    "Jensen-Shannon distance is that of an observer who is always sure.",
    "few_common_items": "Most pairs of people share fewer than ten items, so their consistency is a rough ceiling.",
    "reduced_precision": "Features were computed in {count} instead of float32; the details say how far it moved them.",
    "layer_fixed_beforehand": "Tables and scores are those of layer {count}, fixed before anything was measured.",
    "layer_nested_over_concepts": "Nested alignments choose the layer on the concepts of all but one of {count} folds "
    "and measure it on that one.",
    "layer_choice_undefined": "There are too few concepts to choose a layer on some and measure it on others.",
    "alignment_accuracy_corrected_undefined": "People agree too little on accuracy to free its alignment of noise.",
    "alignment_entropy_corrected_undefined": "People agree too little on entropy to free its alignment of noise.",
    "alignment_snp_corrected_undefined": "People agree too little on SNP to free its alignment of noise.",
    "layers_not_converged": "The readouts of {count} layer(s) stopped short of their optimum.",
    "within_session_correlation_ignored": "People are known by counts alone, so trials of one session are taken as "
    "independent: intervals and tests are too sure of themselves.",
    "null_test_conservative": "The test of a perfect model resamples whole sessions, so it rejects less often than it "
    "says.",
    "layers_passed_over": "{count} layer(s) are wider than benchmark.widest and were not among those to choose from.",
    "calibrated_on_the_experiments_images": "There are no warm-up images: features are calibrated on the experiment's.",
    "convention_needs_more_images": "There is no score by the convention {count}: all trials of a session may show one "
    "object, and some objects have fewer images.",
    "features_not_projected": "Features are not projected, unlike the paper's: this is another model.",
    "catch_rate_of_last_sessions_only": "compat=true: under v2 people's catch rate is that of each one's last session "
    "alone, a fault of the authors' current code.",
    "people_digitised": "People's accuracies were read off a published figure.",
    "published_standard_errors": "People are known by published accuracies and standard errors; conditions are taken "
    "as independent.",
    "seeds_averaged": "Scores are means over {count} seeds, so they have no intervals and no rank groups.",
    "models_without_score": "{count} model(s) have no score and are left out.",
    "interval_biased_down": "Percentile intervals of R² are biased down; the estimate can lie above its interval.",
    **sea_wording.FLAG_SENTENCES,
    **generation_wording.FLAG_SENTENCES,
}


@dataclass(frozen=True)
class ScoreRow:
    """A score with its counterpart for people, as one line of a table.

    Attributes:
        name: Score name.
        title: In words.
        meaning: One clause that says what it measures, or "".
        unit: In words, or "".
        model: The model's value.
        people: People's value of the same score, or None.
    """

    name: str
    title: str
    meaning: str
    unit: str
    model: ScoreValue
    people: ScoreValue | None

    @property
    def digits(self) -> int:
        """Decimals of its numbers: squared errors of proportions are small, so that three would show little."""
        return 5 if self.name.startswith(SMALL) else 3


def title(name: str) -> str:
    """A score's or metric's name in words.

    Example:
        >>> title("snp"), title("lapse_rate"), title("accuracy_people")
        ('Semantic neighbour preference', 'Lapse rate', 'Accuracy, people')
    """
    if name in TITLES:
        return TITLES[name]
    if name.endswith(_PEOPLE):
        return f"{title(name.removesuffix(_PEOPLE))}, people"
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def short_title(name: str) -> str:
    """A metric's name for the head of a narrow column; people's stands after a comma.

    Example:
        >>> short_title("snp_people"), short_title("accuracy")
        ('SNP, people', 'Accuracy')
    """
    if name.endswith(_PEOPLE):
        return f"{short_title(name.removesuffix(_PEOPLE))}, people"
    return SHORT_TITLES.get(name, title(name))


def score_rows(score: Score) -> list[ScoreRow]:
    """The scores in their order, each `x_people` beside its `x`; one without an `x` stands alone."""
    scores = score.scores
    beside = {name for name in scores if name.endswith(_PEOPLE) and name.removesuffix(_PEOPLE) in scores}
    return [
        ScoreRow(
            name=name,
            title=title(name),
            meaning=MEANINGS.get(f"{score.benchmark}/{name}", MEANINGS.get(name, "")),
            unit=UNITS.get(value.unit, value.unit),
            model=value,
            people=scores.get(f"{name}{_PEOPLE}"),
        )
        for name, value in scores.items()
        if name not in beside
    ]


def is_simulated(score: Score) -> bool:
    """Whether the run's "people" are a simulation."""
    return SIMULATED in score.result.flags


def people_word(score: Score) -> str:
    """What to call the people of this run: `people`, or `simulated people`."""
    return "simulated people" if is_simulated(score) else "people"


def run_notes(score: Score) -> list[str]:
    """What to know beside the scores of a run: what the benchmark says, and for SEA who made v."""
    details = score.result.details
    return [*map(str, details.get("notes", ())), *sea_wording.source_notes(details)]


def flag_sentence(flag: str) -> str:
    """A flag in words; `name:COUNT` puts the count into the sentence.

    Example:
        >>> flag_sentence("images_failed:3")
        '3 image(s) could not be read and are left out of every score.'
        >>> flag_sentence("labels_unmatched:2")
        'Labels unmatched: 2.'
    """
    name, _, count = flag.partition(":")
    if name in FLAG_SENTENCES:
        return FLAG_SENTENCES[name].format(count=count.strip() or "Some")
    return title(name) + (f": {count.strip()}." if count else ".")


def is_missing(value: object) -> bool:
    """Whether a table's entry holds nothing: None, NaN or pandas' NA."""
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def number(value: float | None, digits: int = 3) -> str:
    """A number with a fixed count of decimals and a true minus sign; a dash where there is none.

    Example:
        >>> number(0.12345), number(-0.5, 2), number(None), number(float("nan"))
        ('0.123', '−0.50', '–', '–')
    """
    if value is None or is_missing(value):
        return MISSING
    return f"{value:.{digits}f}".replace("-", "−")


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """An interval as `low to high`, or a dash where a side is missing.

    Example:
        >>> interval(0.1, 0.25), interval(None, 1.0)
        ('0.100 to 0.250', '–')
    """
    if low is None or high is None or is_missing(low) or is_missing(high):
        return MISSING
    return f"{number(low, digits)} to {number(high, digits)}"


def with_error(mean: float | None, sem: float | None, digits: int = 3) -> str:
    """A mean with its standard error, `mean ± s.e.m.`; without the error where there is none.

    Example:
        >>> with_error(0.5, 0.01), with_error(0.5, None), with_error(None, None)
        ('0.500 ± 0.010', '0.500', '–')
    """
    if mean is None or is_missing(mean) or sem is None or is_missing(sem):
        return number(mean, digits)
    return f"{number(mean, digits)} ± {number(sem, digits)}"


def condition_label(value: float, unit: str = "") -> str:
    """A condition with its unit.

    Example:
        >>> condition_label(4.0, "s"), condition_label(0.5)
        ('4 s', '0.5')
    """
    return f"{value:g} {unit}".strip()


def condition_metrics(conditions: pd.DataFrame) -> list[str]:
    """The metrics of a per-condition table: every column with a standard error `<name>_sem`, people's left out."""
    columns = [str(c) for c in conditions.columns]
    return [c for c in columns if f"{c}_sem" in columns and not c.endswith(_PEOPLE)]


def count_text(value: int) -> str:
    """A whole number with thin gaps between thousands.

    Example:
        >>> count_text(89797)
        '89\u2009797'
    """
    return f"{int(value):,}".replace(",", "\u2009")
