"""`humanlike agreement RUN FILE …`: what people answered held against the scores of one or several runs.

The folder holds `agreement.json` (schema "humanlike.agreement/1", written last), `tables/*.parquet|csv`,
`figures/*.svg` and `report.html`; `tables/judgments.parquet` is everything that people answered, as a flat table that
the command reads again.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from humanlike.benchmarks.human_agreement import HumanAgreement, SurveyResponses
    from humanlike.data.survey import Survey

SCHEMA, RECORD = "humanlike.agreement/1", "agreement.json"
PACKAGES = ("numpy", "pandas", "scipy")
"""What results depend on; no network is involved."""


def main(arguments: Sequence[str]) -> None:
    """Run the command: exit status 0 when everything is written, 2 for wrong use; errors pass through as exceptions."""
    given = _parser().parse_args(arguments)
    from humanlike.benchmarks.human_agreement import AgreementSettings, human_agreement, read_survey_responses
    from humanlike.data.survey import read_survey
    from humanlike.entry.gathered_folder import folder_to_write
    from humanlike.reports.agreement_page import sentences

    folder = folder_to_write(given.output, "--output")
    runs = [given.run, *given.against]
    survey = None if given.survey is None else read_survey(given.survey)
    scores, sources = gathered_scores(runs, given.score or ["sea"])
    responses = read_survey_responses(given.responses, survey, scores.index, given.max_failed_checks)
    settings = AgreementSettings(
        replicates=given.replicates, splits=given.splits, bins=given.bins, seed=given.seed, level=0.95
    )
    found = human_agreement(responses, scores, settings)
    write_agreement(folder, found, responses, survey, sources)
    print("\n".join([*sentences(found), *found.flags, f"written to {folder}"]))


def gathered_scores(
    runs: Sequence[str | Path], columns: Sequence[str]
) -> tuple[pd.DataFrame, dict[str, dict[str, Any]]]:
    """Scores of every sketch that any run has.

    Args:
        runs: Finished runs, or tables with `sketch_id` and the scores.
        columns: Which of their columns.

    Returns:
        Index sketch id, one column a run and score, named by the score where there is one run and by the run where
        there is one score; and where each came from.

    Raises:
        FileNotFoundError: When there is no such run or table.
        ValueError: When a column is missing, or two runs would have one name.
    """
    import pandas as pd

    from humanlike.entry.survey_sources import run_items, score_column, score_table

    found: dict[str, pd.Series] = {}
    sources: dict[str, dict[str, Any]] = {}
    for given in runs:
        path = Path(given).expanduser()
        if path.is_dir():
            record, items = run_items(path)
            about = {"run": path.name, "digest": record["digest"], "dataset": record["dataset"],
                     "backbone": record["backbone"]}  # fmt: skip
            own = {c: pd.Series(score_column(items, c, f"{path}/items.parquet"),
                                index=items["sketch_id"].astype(str).to_numpy()) for c in columns}  # fmt: skip
        else:
            about, own = {"table": path.name}, {c: score_table(path, c) for c in columns}
        for column, values in own.items():
            run = path.stem if path.is_file() else path.resolve().name
            name = column if len(runs) == 1 else run if len(columns) == 1 else f"{run} · {column}"
            if name in found:
                raise ValueError(
                    f"two runs or tables are called {run!r}; rename one, so that their scores can be told apart"
                )
            found[name], sources[name] = values, {**about, "score": column}
    return pd.DataFrame(found), sources


def write_agreement(
    folder: Path,
    found: HumanAgreement,
    responses: SurveyResponses,
    survey: Survey | None,
    sources: Mapping[str, Mapping[str, Any]],
) -> None:
    """Write the folder, `agreement.json` last.

    Args:
        folder: Where.
        found: Scores held against people.
        responses: What people answered.
        survey: What they were asked, if known.
        sources: Score → where it came from.
    """
    from humanlike.entry.gathered_folder import write_gathered
    from humanlike.reports.agreement_figures import FIGURES, agreement_figure
    from humanlike.reports.agreement_page import render_agreement, sentences

    name, title, caption = FIGURES[found.kind]
    people = responses.participants
    judgments = responses.table.merge(people[["participant", "checks_failed"]], on="participant", how="left")
    tables = {
        "agreement": found.agreement,
        **found.tables,
        "judgments": judgments.assign(fingerprint=responses.fingerprint),
    }
    tables["participants"] = _with_checks(tables["participants"], people)
    write_gathered(
        folder,
        RECORD,
        agreement_record(found, responses, survey, sources),
        tables,
        {name: agreement_figure(found)},
        lambda record, kept, svgs: render_agreement(
            record, kept, {n: (title, caption, svg) for n, svg in svgs.items()}, sentences(found)
        ),
    )


def agreement_record(
    found: HumanAgreement,
    responses: SurveyResponses,
    survey: Survey | None,
    sources: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The content of `agreement.json`."""
    from dataclasses import asdict
    from datetime import UTC, datetime
    from importlib.metadata import version

    from humanlike import __version__

    unseen = [i.item for i in survey.items] if survey else []
    answered = set(responses.table["item"])
    return {
        "schema": SCHEMA,
        "kind": found.kind,
        "scores": list(dict.fromkeys(found.agreement["score"])),
        "agreement": found.agreement.to_dict("records"),
        "fingerprint": responses.fingerprint,
        "counts": dict(found.counts)
        | ({"items_never_answered": sum(i not in answered for i in unseen)} if survey else {}),
        "flags": list(found.flags),
        "settings": asdict(found.settings),
        "seeds": {"seed": found.settings.seed},
        "runs": {name: dict(about) for name, about in sources.items()},
        "survey": dict(survey.source) if survey else {},
        "files": [Path(f).name for f in responses.files],
        "versions": {"humanlike": __version__, **{name: version(name) for name in PACKAGES}},
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _with_checks(table: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """Results of every person, and how they fared at the checks; who was left out has no results."""
    facts = people[["participant", "checks", "checks_failed", "complete", "excluded"]]
    return table.merge(facts, on="participant", how="outer", sort=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="humanlike agreement",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        description=(
            "Hold a run's scores against what people answered on a page of `humanlike survey`, or in a table\n"
            "(participant, item, sketch_id, rank; or participant, sketch_id, rating; or participant, item, sketch_id,\n"
            "shown, accepted); see docs/human_study.md.\n\n"
            "  humanlike agreement outputs/sea/RUN answers/ --survey study/survey.json\n"
            "  humanlike agreement RUN answers.csv --score sea --score recognition\n"
            "  humanlike agreement RUN answers/ --against OTHER_RUN --against THIRD_RUN"
        ),
    )
    parser.add_argument(
        "run", metavar="RUN", help="finished run of benchmark=sea, or a table with sketch_id and scores"
    )
    parser.add_argument("responses", nargs="+", metavar="FILE", help="exported JSON files, folders of them, or tables")
    parser.add_argument("--against", action="append", default=[], metavar="RUN", help="a further run (repeatable)")
    parser.add_argument("--score", action="append", help="column of the items (repeatable; default: sea)")
    parser.add_argument("--survey", metavar="FILE", help="survey.json: answers must be of this page")
    parser.add_argument("--output", default="outputs/agreement", help="folder to write (default: %(default)s)")
    parser.add_argument("--max-failed-checks", type=int, default=0, help="checks somebody may fail (default: 0)")
    parser.add_argument("--replicates", type=int, default=1000, help="crossed resamples (default: %(default)s)")
    parser.add_argument("--splits", type=int, default=200, help="random halves of participants (default: %(default)s)")
    parser.add_argument("--bins", type=int, default=4, help="bins of a rating by score (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all resamples (default: 0)")
    return parser
