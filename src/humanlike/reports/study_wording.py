"""The words of a study's report: sections, titles and captions of tables and figures, heads of columns, flags.

A table that is not listed is shown as well, under its name with the underscores opened, in the section its name begins
with; so a new analysis needs no entry here to be readable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from humanlike.reports.study_observers import Observers
from humanlike.reports.wording import flag_sentence, short_title, title

UNLISTED = ("sketch_rows", "cell_rows", "replicates", "strokes", "discrepancy")
"""Tables that the page does not print row by row: too long, or shown in a form of their own."""


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        key: Anchor on the page.
        heading: In words; `{people}` stands for what people are called, as in the lead.
        lead: What the reader sees in this part.
        begins: What the names of its tables and figures begin with.
    """

    key: str
    heading: str
    lead: str
    begins: tuple[str, ...]


SECTIONS = (
    Section("models", "Models", "What took part in the study.", ("models",)),
    Section(
        "conditions",
        "{People} and models, condition by condition",
        "Means with standard errors: accuracy and entropy over sketches, neighbour preference over concepts.",
        ("strokes", "people", "conditions", "means"),
    ),
    Section(
        "alignment",
        "Alignment with {people}",
        "How well a model's cell scores predict those of {people}. Models that cannot be told apart share a letter.",
        (
            "alignment",
            "noise",
            "ceiling",
            "spearman",
            "rank",
            "comparison",
            "item",
            "models_c",
            "error",
            "consistency",
            "power",
        ),
    ),
    Section(
        "mixed",
        "Mixed-effects models and tests",
        "Estimates and t are from REML fits, χ² from maximum likelihood. A fit that is singular or did not converge "
        "says so in its row; its numbers are then not to be trusted.",
        ("mixed", "welch", "gap"),
    ),
    Section(
        "machine",
        "Sketches drawn by a machine",
        "What {people} see in sketches that a program drew of the same objects.",
        ("machine", "clipasso"),
    ),
    Section(
        "layers",
        "Layer by layer",
        "Alignment against the relative depth of the layer. A ring marks the layer that most folds of the concepts "
        "chose; a chosen layer's own score is measured on concepts that had no say in the choice.",
        ("layer",),
    ),
    Section("further", "Further tables", "Computed by further analyses.", ("",)),
)

TITLES: Mapping[str, str] = {
    "models": "Models (Table 2)",
    "people_by_condition": "{People} by condition (Table 3)",
    "conditions": "Every observer by condition (Figure 4)",
    "means": "Means over cells",
    "strokes_by_condition": "Strokes by condition (Figure 3)",
    "alignment": "Alignment by metric (Figure 5)",
    "noise_ceiling": "Alignment beside its ceiling",
    "spearman": "Agreement between the metrics' orders of the models (Figure 5 D)",
    "rank_groups": "Rank groups",
    "comparisons": "Every two models",
    "item_consistency": "Error consistency with {people} (κ)",
    "models_consistency": "Error consistency between models (κ)",
    "power": "What would separate two models",
    "mixed_fits": "Fits and likelihood-ratio tests",
    "mixed_terms": "Fixed effects",
    "mixed_random": "Random effects",
    "gaps": "Gap between a model and the consistency of {people}",
    "machine_cells": "Every concept and level",
    "machine_levels": "Accuracy of first guesses by level",
    "machine_fit": "Regression of recognisability (Figure 6 A)",
    "machine_divergence": "Divergence of labels by level (Figure 6 B)",
    "machine_trend": "Trend of the divergence over levels",
    "layers": "Scores of every layer",
}

CAPTIONS: Mapping[str, str] = {
    "alignment": "The rows of {people} are their consistency with one another: split half, and Spearman-Brown for all.",
    "rank_groups": "Rank: 1 + the number of models that are significantly better; lowest rank: the lowest place "
    "that the model may have. Two models share a letter if and only if the study cannot tell them apart.",
    "comparisons": "Differences on the same resamples; p is adjusted for the number of pairs.",
    "item_consistency": "Mean over {people} of κ between a person's and the model's being right, on what the "
    "person saw. The ceiling is {people}'s consistency with one another.",
    "models_consistency": "1 where two models are right on the same sketches, 0 where they agree as by chance.",
    "power": "Power of this study, and the images a concept or participants at which four studies of five would find "
    "the difference; ∞ where no number suffices.",
    "mixed_fits": "χ² tests whether models differ. A row that is marked ⚠ did not converge or is singular.",
    "gaps": "The difference is in R² and does not grow with the number of replicates, as t does.",
    "machine_fit": "Cells are taken as independent.",
    "machine_trend": "Cells are taken as independent.",
}

FIGURE_TITLES: Mapping[str, str] = {
    "strokes": "Stroke counts (Figure 3)",
    "spearman": "Agreement of orders (Figure 5 D)",
    "machine_recognition": "Recognisability, concept by concept (Figure 6 A)",
    "machine_levels": "Recognisability, level by level",
    "machine_distance": "Divergence of labels (Figure 6 B)",
    "machine_rank": "Rank of the divergence",
}

_FIGURE_STARTS: Mapping[str, str] = {
    "conditions": "{rest} by condition (Figure 4)",
    "alignment": "{rest}, alignment with {people} (Figure 5)",
    "layers": "Layers of {rest}",
}

HEADS: Mapping[str, str] = {
    "interval": "kind of interval",
    "std_error": "s.e.",
    "statistic": "statistic",
    "p_value": "p",
    "p_adjusted": "p, adjusted",
    "chi2": "χ²",
    "r2": "R²",
    "adjusted_r2": "adjusted R²",
    "delta_r2": "ΔR²",
    "log_likelihood": "log-likelihood, ML",
    "log_likelihood_reml": "log-likelihood, REML",
    "aic": "AIC",
    "bic": "BIC",
    "sd": "s.d.",
    "published_statistic": "published statistic",
    "published_adjusted_r2": "published adjusted R²",
    "published_chi2": "published χ²",
    "a": "model",
    "b": "other model",
    "rank_high": "lowest rank",
    "images_both": "images, both grown",
    "participants_both": "participants, both grown",
    "rho": "ρ",
    "spearman_brown": "Spearman-Brown",
    "corrected": "corrected for noise",
    "training_data": "training data",
    "published_std_error": "published s.e.",
    "fraction_of_ceiling": "share of ceiling",
    "full_sample": "full sample",
}

FLAGS: Mapping[str, str] = {
    "simulated_model": "The model {rest} is a simulation: its answers were made up, not given by a network.",
    "unanswered": "{rest} sketches were not answered by that model and are left out of its scores.",
    "other_images": "The model {rest} was run on other images than the first model: another data set or rendering.",
    "sketches_not_judged": "{rest} sketches were judged by nobody and are left out.",
}


def section_of(name: str) -> Section:
    """The section that a table or figure belongs to, by the longest of all beginnings that fit its name.

    Example:
        >>> section_of("alignment_snp").key, section_of("mixed_effects").key, section_of("a_new_table").key
        ('alignment', 'mixed', 'further')
    """
    fitting = {begin: section for section in SECTIONS for begin in section.begins if name.startswith(begin)}
    return fitting[max(fitting, key=len)]


def words(text: str, observers: Observers) -> str:
    """A text with what people are called in its place."""
    people = observers.people
    return text.replace("{people}", people).replace("{People}", people.capitalize())


def table_title(name: str, observers: Observers) -> str:
    """A table's name in words."""
    return words(TITLES.get(name, title(name)), observers)


def table_place(name: str) -> int:
    """Where a table stands within its section: as listed in `TITLES`, others after them."""
    known = list(TITLES)
    return known.index(name) if name in TITLES else len(known)


def figure_title(name: str, observers: Observers) -> str:
    """A figure's name in words.

    Example:
        >>> figure_title("alignment_snp", Observers())
        'SNP, alignment with people (Figure 5)'
    """
    if name in FIGURE_TITLES:
        return FIGURE_TITLES[name]
    start, _, rest = name.partition("_")
    if start in _FIGURE_STARTS and rest:
        named = observers.label(rest) if start == "layers" else short_title(rest)
        return _FIGURE_STARTS[start].format(rest=named, people=observers.people)
    return title(name)


def head(column: str) -> str:
    """The head of a column.

    Example:
        >>> head("std_error"), head("n_cells")
        ('s.e.', 'n cells')
    """
    return HEADS.get(column, column.replace("_", " "))


def study_flag(flag: str) -> str:
    """A flag of a study in words: `flag`, `flag:COUNT`, `flag:MODEL[:about]`, or `what: more of it` as it is.

    Example:
        >>> study_flag("simulated_model:twin")
        'The model twin is a simulation: its answers were made up, not given by a network.'
        >>> study_flag("unanswered:net:3")
        'net: 3 sketches were not answered by that model and are left out of its scores.'
        >>> study_flag("empty_cells:net:4")
        'net: 4 cell(s) (concept × condition) are empty and left out.'
        >>> study_flag("counts deviate: concepts: 40, expected 128")
        'Counts deviate: concepts: 40, expected 128.'
    """
    name, _, rest = flag.partition(":")
    if name in FLAGS:
        return FLAGS[name].format(rest=rest.replace(":", ": "))
    if rest.isdigit() or rest.startswith(" "):
        return flag_sentence(flag)
    named, _, about = rest.partition(":")
    sentence = flag_sentence(f"{name}:{about}" if about else name)
    return f"{named}: {sentence}" if named else sentence
