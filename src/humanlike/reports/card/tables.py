"""The tables of the report card as files hold them: long, one row a fact, numbers unrounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from humanlike.files import json_ready
from humanlike.reports.card.card import Card
from humanlike.reports.card.groups import readout_of
from humanlike.reports.wording import flag_sentence, title

_MEASURES = ("value", "ci_low", "ci_high", "people", "ceiling", "fraction_of_ceiling", "fraction_low", "fraction_high")


def card_tables(card: Card) -> dict[str, pd.DataFrame]:
    """The tables of a card.

    Returns:
        scores: A row a group, model and score: values, share of the ceiling with the reason where there is none, ranks.
        groups: A row a group and fact that its runs share.
        conditions, layers, switches: See `Card`.
        runs: A row a run: folder, model, layer, seeds, hashes, versions, protocol, date, digest.
        flags: A row a group, model and flag.
        discrepancy: What each switch alone changes, of every study.
        skipped: What could not be read, and why.
    """
    studies = [table.assign(study=name) for name, table in card.discrepancy.items() if len(table)]
    tables = {
        "scores": pd.DataFrame(_score_rows(card)).astype(dict.fromkeys(_MEASURES, float)),
        "groups": pd.DataFrame(
            [{"group": g.key, "name": g.name, "fact": f, "value": v} for g in card.groups for f, v in g.facts.items()]
        ),
        "conditions": card.conditions,
        "layers": card.layers,
        "runs": pd.DataFrame(_run_rows(card)),
        "flags": pd.DataFrame(_flag_rows(card), columns=["group", "model", "flag", "sentence"]),
        "switches": card.switches,
        "discrepancy": pd.concat(studies, ignore_index=True) if studies else pd.DataFrame(),
        "skipped": pd.DataFrame(card.skipped, columns=["folder", "why"]),
    }
    return {name: table for name, table in tables.items() if len(table)}


def _score_rows(card: Card) -> Iterator[dict[str, Any]]:
    for group in card.groups:
        for entry in group.entries:
            for score, found in card.values[group.key][entry.label].items():
                ranking = card.rankings[group.key].get(score)
                own = asdict(found)
                yield {
                    "group": group.key,
                    **{name: group.facts[name] for name in ("benchmark", "version", "dataset")},
                    "model": entry.label,
                    "backbone": entry.first.backbone,
                    "layer": entry.first.layer,
                    "seeds": found.seeds,
                    "score": score,
                    "title": title(score),
                    "value": own["value"],
                    "ci_low": own["low"],
                    "ci_high": own["high"],
                    "people": own["people"],
                    "ceiling": own["ceiling"],
                    "fraction_of_ceiling": own["fraction"],
                    "fraction_low": own["fraction_low"],
                    "fraction_high": own["fraction_high"],
                    "reason": own["reason"],
                    "rank": None if ranking is None else ranking.rank.get(entry.label),
                    "rank_high": None if ranking is None else ranking.rank_high.get(entry.label),
                    "letters": "" if ranking is None else ranking.letters.get(entry.label, ""),
                    "n": own["n"],
                    "unit": own["unit"],
                }


def _run_rows(card: Card) -> Iterator[dict[str, Any]]:
    for group in card.groups:
        for entry in group.entries:
            for run in entry.runs:
                protocol = run.result.protocol
                changed = ", ".join(f"{n}={protocol.get(n)}" for n in protocol.get("overridden", ()))
                yield {
                    "group": group.key,
                    "benchmark": run.benchmark,
                    "version": run.benchmark_version,
                    "dataset": run.dataset,
                    "model": entry.label,
                    "layer": run.layer,
                    "readout": readout_of(run),
                    "seeds": _text(run.seeds),
                    "protocol": f"{protocol.get('preset', 'none')}{' with ' + changed if changed else ''}",
                    "started": run.started,
                    "seconds": float(run.seconds),
                    "digest": run.digest,
                    **{f"hash_{k}": _hash(v) for k, v in run.hashes.items()},
                    "versions": _text(run.versions),
                    "folder": str(run.run_dir),
                }


def _text(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _hash(value: Any) -> str:
    """A hash as text; of several files, each with its name."""
    return _text(json_ready(value)) if isinstance(value, Mapping) else str(value)


def _flag_rows(card: Card) -> Iterator[tuple[str, str, str, str]]:
    for group in card.groups:
        for entry in group.entries:
            for flag in dict.fromkeys(flag for run in entry.runs for flag in run.result.flags):
                yield group.key, entry.label, flag, flag_sentence(flag)
