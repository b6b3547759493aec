"""`humanlike survey SOURCE OUT`: a page on which people order or rate sketches, or accept an order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.gathered_folder import folder_to_write

if TYPE_CHECKING:
    import pandas as pd

    from humanlike.benchmarks.survey_items import Chosen
    from humanlike.data.survey import RatingScale
    from humanlike.types import Sketches

ITEMS, PAGE, RECORD = "items", "survey.html", "survey.json"
_LARGE_MB = 30
_CONTROLS = 0.25
_A = {"ranking": "a ranking", "rating": "a rating", "acceptance": "an acceptance"}


def main(arguments: Sequence[str]) -> None:
    """Run the command: exit status 0 when everything is written, 2 for wrong use; errors pass through as exceptions."""
    parser = _parser()
    given, settings = parser.parse_known_args(arguments)
    wrong = [s for s in settings if s.startswith("-") or "=" not in s]
    if wrong:
        parser.error(f"cannot read {wrong[0]!r}: settings of the data set are written dataset.KEY=VALUE")
    _refuse_unfit(given, parser)
    folder = folder_to_write(given.target, "OUT")
    from humanlike.benchmarks.survey_checks import attention_checks
    from humanlike.benchmarks.survey_items import (
        PUBLISHED_SKETCHES,
        PUBLISHED_TRIPLES,
        choose_sketches,
        choose_triples,
        in_score_order,
    )
    from humanlike.data.survey import Survey, write_survey
    from humanlike.reports.run_folder import write_table
    from humanlike.reports.survey_page import picture, picture_hash, survey_texts, write_survey_page

    triples, accepting = given.kind != "rating", given.kind == "acceptance"
    scale = None if triples else _scale(given.scale or "1:7", given.slider)
    min_gap = 0.1 if given.min_gap is None else given.min_gap
    texts = survey_texts(given.kind, given.text)
    data, sketches, source = _sketches(given, settings)
    if triples:
        count = PUBLISHED_TRIPLES if given.count is None else given.count
        chosen = choose_triples(sketches, count, min_gap=min_gap, mixed=given.mixed, seed=given.seed)
    else:
        count = min(PUBLISHED_SKETCHES, len(sketches)) if given.count is None else given.count
        chosen = choose_sketches(sketches, count, seed=given.seed)
    items = in_score_order(chosen) if accepting else chosen.items
    checks = attention_checks(items, given.checks, scale, given.seed, accepting=accepting)
    place = {str(sketch): i for i, sketch in enumerate(data.table["sketch_id"])}
    shown = dict.fromkeys(chosen.table["sketch_id"])  # checks show the same sketches
    pictures = {sketch: picture(data.images.load(place[sketch]), given.side) for sketch in shown}
    survey = Survey(
        kind=given.kind,
        items=items,
        checks=checks,
        scale=scale,
        seed=given.seed,
        images={sketch: picture_hash(png) for sketch, png in pictures.items()},
        texts=texts,
        source={**source, "score": given.score, "min_gap": min_gap if triples else None, "mixed": given.mixed},
        controls=(_CONTROLS if given.controls is None else given.controls) if accepting else None,
    )
    _keep_older(folder / RECORD, survey.fingerprint, parser)
    write_survey_page(folder / PAGE, survey, pictures)
    write_table(folder / f"{ITEMS}.parquet", chosen.table)
    write_survey(folder / RECORD, survey)
    print("\n".join(_lines(chosen, folder, survey.fingerprint, given.checks, min_gap)))


def _refuse_unfit(given: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Options of the other kind of survey, and sizes that no picture can have."""
    ordered = {"--min-gap": given.min_gap is not None, "--mixed": given.mixed}
    rating = {"--scale": given.scale is not None, "--slider": given.slider}
    accepting = {"--controls": given.controls is not None}
    for kinds, options in (("ranking", "acceptance"), ordered), (("rating",), rating), (("acceptance",), accepting):
        unfit = [option for option, there in options.items() if there and given.kind not in kinds]
        if unfit:
            words = " or ".join(_A[kind] for kind in kinds)
            parser.error(f"{unfit[0]} is for {words}, but this is {_A[given.kind]}; leave it out, or give "
                         f"--kind {kinds[0]}")  # fmt: skip
    if given.side < 16:
        parser.error(f"--side is {given.side}; a picture needs 16 pixels or more, 256 are usual")


def _scale(text: str, slider: bool) -> RatingScale:
    from humanlike.data.survey import RatingScale

    parts = text.split(":")
    if len(parts) not in (2, 3) or not all(part.lstrip("-").isdigit() for part in parts):
        raise ValueError(f"--scale is {text!r}; write LOW:HIGH or LOW:HIGH:STEP, for example 1:7 or 0:100:5")
    low, high, step = (*map(int, parts), 1)[:3]
    return RatingScale(low, high, step, slider)


def _sketches(given: argparse.Namespace, settings: Sequence[str]) -> tuple[Sketches, pd.DataFrame, dict[str, Any]]:
    """The data set, `sketch_id, concept, score` of what can be asked about, and where both came from."""
    from humanlike.entry.survey_sources import folder_sketches, run_sketches, with_scores

    folder = Path(given.source).expanduser()
    if (folder / "score.json").is_file():
        if given.scores or given.layout:
            raise ValueError("--scores and --layout are for a folder of sketches; a run brings scores and images")
        return run_sketches(folder, given.score, settings)
    if settings:
        raise ValueError(f"{settings[0]!r} sets a run's data set, but {given.source} is no finished run")
    data = folder_sketches(folder, given.layout or "concept")
    table, source = with_scores(data, given.scores, given.score)
    if given.kind != "rating" and given.scores is None:
        raise ValueError(
            "triples are chosen by score: give a finished run of benchmark=sea, or a table sketch_id, "
            f"{given.score} with --scores; a rating needs none (--kind rating)"
        )
    return data, table, source


def _keep_older(path: Path, fingerprint: str, parser: argparse.ArgumentParser) -> None:
    """Refuse to write over another survey, whose answers could then not be read."""
    if not path.is_file():
        return
    from humanlike.data.survey import read_survey

    older = read_survey(path).fingerprint
    if older != fingerprint:
        parser.error(
            f"{path.parent} holds the survey {older}, another than this one ({fingerprint}); people may have answered "
            "it, so name another folder or remove it"
        )


def _lines(chosen: Chosen, folder: Path, fingerprint: str, checks: int, min_gap: float) -> list[str]:
    size = (folder / PAGE).stat().st_size / 1e6
    sketches = f"{chosen.table['sketch_id'].nunique()} sketches"
    triples = len(chosen.table) > len(chosen.items)
    said = [
        f"{f'{len(chosen.items)} triples of {sketches}' if triples else sketches}, {checks} attention "
        f"check(s), fingerprint {fingerprint}; the page has {size:.1f} MB"
    ]
    if chosen.passed_over:
        shown = ", ".join(chosen.passed_over[:8]) + (", …" if len(chosen.passed_over) > 8 else "")
        said.append(f"no triple with scores {min_gap:g} apart in {len(chosen.passed_over)} concept(s): {shown}")
    if size > _LARGE_MB:
        said.append("the page is large for a phone: fewer questions or --side 128 make it smaller")
    return [
        *said,
        f"written to {folder}; give people {PAGE}, keep {RECORD}, and read their files with: "
        f"humanlike agreement RUN FILE … --survey {folder / RECORD}",
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="humanlike survey",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        description=(
            "Make one HTML page on which people put triples of sketches in order, say whether they accept the order\n"
            "by a score, or rate sketches. It needs no server and no network, keeps answers in the browser and\n"
            "exports them as a file; see docs/human_study.md.\n\n"
            "  humanlike survey outputs/sea/RUN study/ --count 160 --checks 4\n"
            "  humanlike survey outputs/sea/RUN study/ --kind acceptance --controls 0.25\n"
            "  humanlike survey outputs/sea/RUN study/ --kind rating --scale 0:100:5 --slider dataset.root=PATH\n"
            "  humanlike survey my_sketches/ study/ --kind rating --count 88"
        ),
    )
    parser.add_argument("source", metavar="SOURCE", help="finished run of benchmark=sea, or a folder of sketches")
    parser.add_argument("target", metavar="OUT", help="folder to write")
    parser.add_argument("--kind", choices=tuple(_A), default="ranking", help="default: %(default)s")
    parser.add_argument("--count", type=int, help="triples (default: 160) or sketches (default: 88, or all)")
    parser.add_argument("--score", default="sea", help="column that orders the sketches (default: %(default)s)")
    parser.add_argument(
        "--min-gap", type=float, help="least difference of score between neighbours in a triple (default: 0.1)"
    )
    parser.add_argument("--mixed", action="store_true", help="triples of several concepts instead of one")
    parser.add_argument(
        "--controls", type=float, help="share of an acceptance's questions in another order (default: 0.25)"
    )
    parser.add_argument("--checks", type=int, default=0, help="attention checks among the questions")
    parser.add_argument("--scale", metavar="LOW:HIGH[:STEP]", help="of a rating (default: 1:7)")
    parser.add_argument("--slider", action="store_true", help="a slider instead of one button a rating")
    parser.add_argument("--text", metavar="FILE", help="YAML file with texts of your own, see reports/survey_texts/")
    parser.add_argument("--scores", metavar="FILE", help="table with sketch_id and the score, for a folder of sketches")
    parser.add_argument("--layout", help="what the levels of a folder of sketches mean (default: concept)")
    parser.add_argument("--side", type=int, default=256, help="longest side of a picture in pixels (default: 256)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice and of everybody's order")
    return parser
