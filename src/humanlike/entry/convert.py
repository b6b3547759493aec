"""`humanlike convert KIND SRC DST`: published or own files → the folder of a study, with what was left out."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from humanlike.entry.conf import conf_dir

if TYPE_CHECKING:
    from humanlike.data.seva_checks import PublishedSketches

IMAGES = ("render", "copy", "link")


def kinds() -> dict[str, str]:
    """What can be converted → the configuration of `conf/dataset` that reads it.

    A data set whose published files differ from what is read in daily use has a second configuration, named
    `<kind>_published`. Experiments on object learning are no sketches: they are read as they are.
    """
    texts = {path.stem: path.read_text("utf-8") for path in (conf_dir() / "dataset").glob("*.yaml")}
    options = {o for o, text in texts.items() if "\nroot:" in text and "humanlike.data.object_learning" not in text}
    found = {o.removesuffix("_published"): o for o in sorted(options)}
    return dict(sorted(found.items()))


def main(arguments: Sequence[str]) -> None:
    """Run the command: exit status 0 when everything is written, 2 for wrong use; errors pass through as exceptions."""
    given, settings = _parser().parse_known_args(arguments)
    unknown = [s for s in settings if s.startswith("-") or "=" not in s]
    if unknown:
        _wrong(
            f"cannot read {unknown[0]!r}: settings of the data set are written KEY=VALUE, options --images, "
            "--on-bad-image and --probabilities"
        )
    known = kinds()
    if given.kind not in known:
        near = difflib.get_close_matches(given.kind, known, n=2)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(known)}"
        _wrong(f"cannot convert {given.kind!r}; {hint}")

    from omegaconf import OmegaConf

    from humanlike import __version__
    from humanlike.data.seva_checks import PublishedSketches
    from humanlike.data.study_writer import write_study
    from humanlike.entry.conf import compose
    from humanlike.entry.targets import build

    config = compose("evaluate", [f"dataset={known[given.kind]}", *(f"dataset.{s}" for s in settings)])
    config.dataset.root = str(Path(given.source).expanduser())
    data = build(config.dataset)
    published = data if isinstance(data, PublishedSketches) else None
    if given.probabilities and published is None:
        _wrong(f"--probabilities: {given.kind} has no published class probabilities of models")
    conversion = write_study(
        data,
        given.target,
        images=given.images,
        on_bad_image=given.on_bad_image,
        record={
            "kind": given.kind,
            "settings": OmegaConf.to_container(config.dataset, resolve=True),
            "humanlike": __version__,
            **({} if published is None else published.record()),
        },
        watch=_watched,
    )
    print(f"{data.name}: {data.source}")
    print("\n".join([*([] if published is None else published.lines()), *conversion.lines()]))
    if given.probabilities and published is not None:
        print("\n".join(_probabilities(published, Path(given.target).expanduser())))
    reader = given.kind if given.kind != known[given.kind] else "table"
    print(f"written to {given.target}; use it with: python evaluate.py dataset={reader} dataset.root={given.target}")


def _probabilities(data: PublishedSketches, target: Path) -> list[str]:
    """Read the published class probabilities for the sketches that were written; a line a model."""
    import pandas as pd

    from humanlike.data.published_probabilities import convert_probabilities

    assert data.probabilities is not None
    written = pd.read_parquet(target / "sketches.parquet", columns=["sketch_id"])["sketch_id"].tolist()
    models = convert_probabilities(data.probabilities, target / "probabilities", written, data.labels)
    return [model.line() for model in models]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="humanlike convert",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        description=(
            "Turn a data set into tables (Parquet) and images in one folder, which dataset=table reads. What was left\n"
            "out, and why, is printed and stored in conversion.json. The folder appears when everything is written.\n\n"
            f"KIND is one of: {', '.join(kinds())}.\n"
            "Settings of the data set follow as KEY=VALUE, as in conf/dataset/KIND.yaml:\n"
            "  humanlike convert quickdraw raw_ndjson/ study/ classes=seva 'time_cuts=[2,8]' max_per_class=100\n"
            "  humanlike convert table answers/ study/ on_unknown=drop 'aliases={Löwe: lion}'"
        ),
    )
    parser.add_argument("kind", metavar="KIND", help="what lies at SRC")
    parser.add_argument("source", metavar="SRC", help="folder, zip or table to read")
    parser.add_argument("target", metavar="DST", help="new folder to write")
    parser.add_argument("--images", choices=IMAGES, default=IMAGES[0], help="PNGs as a network sees them, or the files")
    parser.add_argument(
        "--probabilities",
        action="store_true",
        help="seva: also read models' published class probabilities, pickles of others, in a process of their own",
    )
    parser.add_argument("--on-bad-image", choices=("raise", "skip"), default="raise", help="skip: leave out and count")
    return parser


def _wrong(sentence: str) -> None:
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(2)


def _watched(items: Iterable[int]) -> Iterable[int]:
    """The items with a progress bar, which is drawn on a terminal only."""
    from rich.progress import track

    return track(list(items), description="images", transient=True, disable=not sys.stderr.isatty())
