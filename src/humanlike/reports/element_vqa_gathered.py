"""Judges of elements side by side: one table with rank groups, beside the published one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from humanlike.benchmarks.element_vqa_published import published_table
from humanlike.reports import wording
from humanlike.reports.gathered_page import page_record
from humanlike.reports.html import page_template
from humanlike.reports.judge_printed import with_interval
from humanlike.reports.study_observers import Observers
from humanlike.reports.study_tables import TableView, table_view
from humanlike.reports.tables import markdown_table
from humanlike.types import Score

TITLES: Mapping[str, str] = {
    "judges": "Judges",
    "ranks": "Ranks",
    "published": "Published judges",
    "superordinates": "Kinds of things",
    "runs": "Runs",
}
CAPTIONS: Mapping[str, str] = {
    "judges": "All pairs of sketch and element pooled, with 95% intervals (source images resampled within concepts). "
    "Always present is a judge that looks at nothing, on the same sketches.",
    "ranks": "On the sketches that all judges of a data set were asked about. Rank: 1 + judges that are better beyond "
    "chance, to the worst it could be; judges that share a letter cannot be told apart.",
    "published": "Nine vision-language models on CommonSketch. Numbers on other sketches, with another rate of present "
    "elements, cannot be compared with them directly.",
    "superordinates": "F1 and balanced accuracy; all pairs of a superordinate category pooled.",
    "runs": "What was judged by whom.",
}
UNLIKE_COVERAGE = 0.02
"""Difference in the share of answered questions from which judges' scores of answers are compared with a warning."""
SHOWN = ("f1", "precision", "recall", "accuracy", "balanced_accuracy", "present_rate_bias", "coverage",
         "accuracy_over_all")  # fmt: skip


def gathered_tables(scores: Mapping[str, Score], ranks: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables of several judges.

    Args:
        scores: Name of a run → the run.
        ranks: See `judge_ranks`.

    Returns:
        scores: `run, dataset, score, value, ci_low, ci_high, n`; ranks; published; superordinates: `run`, then the
        columns of a run's table; runs: `run, dataset, judge, threshold, elements, pairs, present_rate, folder`.
    """
    rows = [
        {"run": run, "dataset": score.dataset, "score": name, "value": v.value, "ci_low": v.ci_low,
         "ci_high": v.ci_high, "n": v.n}
        for run, score in scores.items() for name, v in score.scores.items()
    ]  # fmt: skip
    kinds = [s.result.tables["superordinates"].assign(run=run) for run, s in scores.items()
             if "superordinates" in s.result.tables]  # fmt: skip
    tables = {
        "scores": pd.DataFrame(rows).astype({"value": float, "ci_low": float, "ci_high": float}),
        "ranks": ranks,
        "published": published_table(),
        "runs": pd.DataFrame([_about(run, score) for run, score in scores.items()]),
    }
    if kinds:
        table = pd.concat(kinds, ignore_index=True)
        tables["superordinates"] = table[["run", *(c for c in table.columns if c != "run")]]
    return tables


def _about(run: str, score: Score) -> dict[str, Any]:
    judge = score.result.details["judge"]
    return {
        "run": run,
        "dataset": score.dataset,
        "judge": judge["source"],
        "threshold": judge["threshold"],
        "elements": score.result.details["elements"]["source"],
        "pairs": judge["pairs"],
        "present_rate": judge["present_rate"],
        "folder": score.run_dir,
    }


def gathered_warnings(scores: Mapping[str, Score]) -> list[str]:
    """What keeps these judges from being compared: other sketches, other elements."""
    said = []
    datasets = {score.dataset for score in scores.values()}
    if len(datasets) > 1:
        said.append(f"Judges on different data sets ({', '.join(sorted(datasets))}) are not ranked against each other.")
    for dataset in sorted(datasets):
        lists = {s.result.details["elements"]["source"] for s in scores.values() if s.dataset == dataset}
        if len(lists) > 1:
            said.append(f"The judges on {dataset} were asked about different elements ({'; '.join(sorted(lists))}).")
        share = {name: s.scores["coverage"].value for name, s in scores.items() if s.dataset == dataset}
        least, most = (choose(share, key=lambda name: share[name] or 0.0) for choose in (min, max))
        if (share[most] or 0.0) - (share[least] or 0.0) > UNLIKE_COVERAGE:
            said.append(
                f"Judges on {dataset} answered between {share[least] or 0.0:.1%} ({least}) and {share[most]:.1%} "
                f"({most}) of the questions. F1 and accuracy are of answers alone and favour a judge that is silent "
                "where it is unsure; accuracy over all counts silence as wrong."
            )
    return said


def printed(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables as people read them: texts, a row a judge."""
    shown = {"judges": _judges(tables), "ranks": _ranks(tables["ranks"])}
    published = tables["published"].rename(columns=wording.short_title)
    shown["published"] = published
    if "superordinates" in tables:
        columns = ["run", "superordinate", "pairs", "present_rate", "f1", "balanced_accuracy"]
        shown["superordinates"] = tables["superordinates"][columns].rename(columns=wording.short_title)
    return {**shown, "runs": tables["runs"].drop(columns="folder")}


def _judges(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    letters = tables["ranks"][tables["ranks"]["score"] == "f1"].set_index("run")["letters"]
    rows = []
    for run, own in tables["scores"].groupby("run", sort=False):
        by_name = {row["score"]: row for row in own.to_dict("records")}
        row = {"judge": run, "group": letters[run]}
        for name in SHOWN:
            v = by_name[name]
            row[wording.short_title(name)] = with_interval(v["value"], v["ci_low"], v["ci_high"])
        row[wording.short_title("always_present_f1")] = wording.number(by_name["always_present_f1"]["value"])
        rows.append((-(by_name["f1"]["value"] if pd.notna(by_name["f1"]["value"]) else -1.0), row))
    return pd.DataFrame([row for _, row in sorted(rows, key=lambda pair: pair[0])])


def _ranks(ranks: pd.DataFrame) -> pd.DataFrame:
    spans = [
        str(low) if low == high else f"{low} to {high}"
        for low, high in zip(ranks["rank"], ranks["rank_high"], strict=True)
    ]
    return pd.DataFrame(
        {
            "data set": ranks["dataset"],
            "score": [wording.short_title(s) for s in ranks["score"]],
            "judge": ranks["run"],
            "value": [wording.number(v) for v in ranks["value"]],
            "rank": spans,
            "group": ranks["letters"],
        }
    )


def render_gathered(record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], figures: Mapping[str, str]) -> str:
    """The report of several judges as HTML text.

    Args:
        record: What gather.json holds.
        tables: See `gathered_tables`.
        figures: Not used: there are none.

    Returns:
        A page that needs nothing outside itself.
    """
    del figures
    views = printed(tables)
    return page_template("element_vqa_gathered.html.j2").render(
        results=TITLES["judges"],
        headline=_view("judges", views.pop("judges")),
        flags=[*record["warnings"], *record["flags"]],
        figures=[],
        tables=[_view(name, table) for name, table in views.items() if len(table)],
        missing=list(record.get("missing", {}).items()),
        **page_record(record, tables),
    )


def _view(name: str, table: pd.DataFrame) -> TableView:
    return table_view(name, TITLES[name], table, Observers(), CAPTIONS[name])


def gathered_markdown(record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> str:
    """Warnings and tables as Markdown."""
    parts = [f"# Judges of elements: {record['dataset']}", *(f"> {text}" for text in record["warnings"])]
    for name, table in printed(tables).items():
        texts = [
            [wording.MISSING if wording.is_missing(v) else f"{v:.3g}" if isinstance(v, float) else str(v) for v in row]
            for row in table.itertuples(index=False)
        ]
        parts += [f"## {TITLES[name]}", CAPTIONS[name], markdown_table(list(table.columns), texts)]
    return "\n\n".join(parts) + "\n"
