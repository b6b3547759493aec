"""What `humanlike agreement` shows: sentences, tables and page of scores held against people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from humanlike.benchmarks.human_agreement import PUBLISHED_AGREEMENT, HumanAgreement
from humanlike.reports import wording
from humanlike.reports.gathered_page import page_record
from humanlike.reports.html import inline_svg, page_template
from humanlike.reports.study_observers import Observers
from humanlike.reports.study_tables import TableView, table_view

MEASURE_WORDS: Mapping[str, str] = {
    "accepted": "orders accepted",
    "controls_accepted": "controls accepted",
    "difference": "difference",
    "concordance": "pairs in the score's order",
    "kendall": "Kendall's τ, mean",
    "spearman": "Spearman's ρ",
    "pearson": "Pearson's r",
    "pearson_corrected": "Pearson's r, freed of the ratings' noise",
    "split_half": "correlation of halves",
    "spearman_brown": "reliability (Spearman-Brown)",
    "icc1": "ICC(1,1)",
    "icc2": "ICC(2,1)",
    "icc3": "ICC(3,1)",
    "icc1k": "ICC(1,k)",
    "icc2k": "ICC(2,k)",
    "icc3k": "ICC(3,k)",
}
_KENDALL_OF_MEANS = "Kendall's τ (b)"
TITLES: Mapping[str, str] = {
    "agreement": "Agreement",
    "participants": "Participants",
    "items": "Items",
    "sketches": "Sketches",
    "bins": "Mean ratings by score",
    "reliability": "Reliability of the ratings",
    "comparisons": "Every two scores",
}
_PUBLISHED = " and ".join(f"{value:.3f}" for value in PUBLISHED_AGREEMENT.values())
CAPTIONS: Mapping[tuple[str, str], str] = {
    ("ranking", "agreement"): "Participants and items were resampled together for the intervals. The ceiling of "
    "accepted orders is how often a person gives the order that most of the others gave; its upper bound counts the "
    f"person among them. Published for SEA: {_PUBLISHED} of 27 people's judgments of 160 triples; those people were, "
    "as far as is known, shown SEA's order and agreed or not, as in a survey of kind acceptance, which is easier than "
    "giving it unprompted.",
    ("acceptance", "agreement"): "Orders accepted: of those that were shown in the score's order; controls were shown "
    "in another. Participants and items were resampled together for the intervals. A share accepted has no chance "
    "level of its own, since people who agree with everything reach 1; their difference is 0. Published for SEA, to "
    f"be held beside orders accepted: {_PUBLISHED} of 27 people's judgments of 160 triples; whether controls were "
    "among them is not stated.",
    ("acceptance", "items"): "Order: by the score. Least gap: difference of the two nearest scores of the item.",
    ("acceptance", "comparisons"): "Differences of orders accepted and controls accepted, on the same resamples; p is "
    "adjusted for the number of pairs (Holm). Items are shown in the order of one score, which favours it.",
    ("rating", "agreement"): "Correlations of a sketch's mean rating with its score. Participants and sketches were "
    "resampled together for the intervals. The ceiling is the square root of the ratings' reliability.",
    ("ranking", "participants"): "Others: how often this person gives the order that most of the others gave.",
    ("rating", "participants"): "Others: the mean rating by everybody else.",
    ("ranking", "items"): "Least gap: difference of the two nearest scores of the item. Pair agreement: share of pairs "
    "of people who gave one order.",
    ("rating", "bins"): "Bins hold equally many sketches, by rising score.",
    ("rating", "reliability"): "The interval of halves is over random halves, those of ICC are over samples. The "
    "reliability is that of the mean over all participants, as is ICC(2,k).",
    ("ranking", "comparisons"): "On the same resamples; p is adjusted for the number of pairs (Holm). Items are chosen "
    "by one score, which can favour it.",
    ("rating", "comparisons"): "On the same resamples; p is adjusted for the number of pairs (Holm).",
}


def sentences(found: HumanAgreement) -> list[str]:
    """The main result of every score as a sentence.

    Args:
        found: Scores held against people.
    """
    main = {"ranking": ("accepted", "of judgments accept the order by {score}"),
            "acceptance": ("accepted", "of judgments accept the order by {score} where it is shown"),
            "rating": ("spearman", "is Spearman's ρ of mean ratings with {score}")}  # fmt: skip
    measure, words = main[found.kind]
    said = []
    for row in found.agreement[found.agreement["measure"] == measure].to_dict("records"):
        text = f"{wording.number(row['value'])} ({wording.interval(row['ci_low'], row['ci_high'])}) "
        text += words.format(score=wording.short_title(str(row["score"])))
        if found.kind == "ranking":
            text += f"; chance is {wording.number(row['chance'])}, people among themselves reach "
            text += f"{wording.number(row['ceiling'])} (at most {wording.number(row['ceiling_high'])})"
        if found.kind == "acceptance":
            text += _beside(found, str(row["score"]))
        people = wording.count_text(found.counts["participants"])
        said.append(f"{text}; {people} people, {wording.count_text(row['n'])} "
                    f"{'sketches' if found.kind == 'rating' else 'judgments'}.")  # fmt: skip
    return said


def _beside(found: HumanAgreement, score: str) -> str:
    """What an acceptance is to be read with: controls, the difference, and what is published."""
    own = found.agreement[found.agreement["score"] == score].to_dict("records")
    by_measure = {row["measure"]: row for row in own}
    controls, difference = by_measure["controls_accepted"], by_measure["difference"]
    return (
        f", {wording.number(controls['value'])} ({wording.interval(controls['ci_low'], controls['ci_high'])}) accept "
        f"another order, a difference of {wording.number(difference['value'])} "
        f"({wording.interval(difference['ci_low'], difference['ci_high'])}); published for SEA are {_PUBLISHED}"
    )


def in_words(table: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The column `measure` in words, where there is one."""
    if "measure" not in table.columns:
        return table
    own = {
        **MEASURE_WORDS,
        **({"kendall": _KENDALL_OF_MEANS} if kind == "rating" else {"spearman": "Spearman's ρ, mean"}),
    }
    return table.assign(measure=table["measure"].map(lambda name: own.get(name, name)))


def render_agreement(
    record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], figures: Mapping[str, tuple[str, str, str]],
    said: Sequence[str],
) -> str:  # fmt: skip
    """The report as HTML text, with nothing from outside.

    Args:
        record: What agreement.json holds.
        tables: The tables of `HumanAgreement` and `agreement` itself.
        figures: Name → (title, caption, SVG).
        said: Sentences on top.
    """
    kind = str(record["kind"])
    views = {name: in_words(table, kind) for name, table in tables.items() if name != "judgments"}
    return page_template("agreement.html.j2").render(
        results=TITLES["agreement"],
        headline=_view("agreement", views.pop("agreement"), kind),
        said=said,
        named=[wording.short_title(str(name)) for name in record["scores"]],
        flags=record["flags"],
        figures=[(len(figures) == 1, title, caption, inline_svg(n, s)) for n, (title, caption, s) in figures.items()],
        tables=[_view(name, table, kind) for name, table in views.items()],
        missing=[],
        **page_record(record, tables),
    )


def _view(name: str, table: pd.DataFrame, kind: str) -> TableView:
    return table_view(name, TITLES[name], table, Observers(), CAPTIONS.get((kind, name), ""))
