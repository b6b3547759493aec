"""CLIPasso's sketches of SEVA with people's answers to them, from the published files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from humanlike.data.images import BadImageError, DecodeOptions, ImageFiles
from humanlike.data.labels import require_choice
from humanlike.data.seva import answers_of, images_by_id, read_concepts, semantic_rows, with_images
from humanlike.data.seva_checks import LABELS, PublishedSketches, exactly, name_check, settle, study_checks
from humanlike.data.seva_files import (
    CONCEPTS,
    MACHINE_PNGS,
    MACHINE_PROBABILITIES,
    MACHINE_TRIALS,
    REPOSITORY,
    need_files,
    png_archive,
)
from humanlike.data.seva_trials import MACHINE, clipasso_id_of, judged_sketches, read_trials
from humanlike.files import sha256_value
from humanlike.types import ImageSource

JUDGED = 8_191
"""16 photographs × 128 concepts × 4 stroke budgets, less the sketch that the published analysis leaves out."""
PARTICIPANTS, EXCLUDED = 1_481, 7
NO_IMAGES = "none"


@dataclass(frozen=True)
class AnswersOnly:
    """The images of a data set that is read for people's answers alone: none of them can be loaded.

    Attributes:
        names: Ids of the sketches.
    """

    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def load(self, index: int) -> Image.Image:
        """See ImageSource.

        Raises:
            BadImageError: Always.
        """
        raise BadImageError(self.describe(index), "the data set was read with images=none, for its answers alone")

    def content_hash(self, index: int) -> str:
        """See ImageSource."""
        return sha256_value(["answers only", self.names[index]])

    def describe(self, index: int) -> str:
        """See ImageSource."""
        return f"CLIPasso sketch {self.names[index]}"


def seva_clipasso_published(
    root: str | Path,
    images: str | Path | None = None,
    fetch: bool = False,
    mirrors: Sequence[str] = (),
    offline: bool | None = None,
    on_count: str = "raise",
    on_unknown: str = "raise",
    on_missing_image: str = "raise",
    on_repeat: str = "raise",
) -> PublishedSketches:
    """CLIPasso's sketches at 4, 8, 16 and 32 strokes, with people's answers; cleaned like people's sketches.

    The sketch `canvas_09s_32`, which the published analysis leaves out, is left out and counted.

    Args:
        root: Folder with machine_recog_df.csv, things_concepts.tsv, perhaps THINGS_spose.txt, and the sketches.
        images: Zip or folder of the sketches, named `<photograph>_<strokes>.png`; "none" to read people's answers
            alone, which is all that comparing the two kinds of sketches needs; default: seva_clipasso_pngs.zip or
            seva_clipasso_pngs in `root`. There is no direct link to them.
        fetch: Fetch missing files from `mirrors`; none of these has a published direct link.
        mirrors: See `fetch_missing`.
        offline: True: fetch nothing; what is missing is named.
        on_count: See `seva_published`.
        on_unknown: See `seva_published`.
        on_missing_image: See `seva_published`.
        on_repeat: See `seva_published`.

    Returns:
        The data set: `condition` in strokes, also as `num_strokes`; `image_id` = file name of the photograph, as in
        `seva_published`.

    Raises:
        FileNotFoundError: When files are missing, with where to get each.
        ValueError: Naming file and rows (from 1) of what cannot be read, or the counts that deviate.
    """
    require_choice(on_missing_image, "on_missing_image", ("raise", "drop"))
    require_choice(on_count, "on_count", ("raise", "warn"))
    folder = Path(root).expanduser()
    need_files(folder, [MACHINE_TRIALS, CONCEPTS], fetch=fetch, mirrors=mirrors, offline=offline)
    concepts, labels = read_concepts(folder)
    where = f"trials {folder / MACHINE_TRIALS}"
    trials_dropped: Counter[str] = Counter()
    trials, rows = read_trials(folder / MACHINE_TRIALS, MACHINE, trials_dropped)
    judged = judged_sketches(trials, labels, where)
    table = judged.assign(num_strokes=judged["condition"], judged=True)
    dropped: Counter[str] = Counter()
    source: ImageSource = AnswersOnly(tuple(table["sketch_id"]))
    all_ids = table["sketch_id"].tolist()
    if images != NO_IMAGES:
        archive = png_archive(folder, images, MACHINE_PNGS)
        table = with_images(table, images_by_id(archive, clipasso_id_of), archive, on_missing_image, dropped)
        source = ImageFiles(tuple(table["path"]), archive, DecodeOptions())
    answers = answers_of(trials, table, labels, all_ids, where, on_unknown, on_repeat)
    space, space_flags, space_check = semantic_rows(folder, labels)
    checks = [
        *study_checks(trials, judged, JUDGED, PARTICIPANTS, EXCLUDED, "strokes"),
        name_check(trials, concepts),
        exactly("THINGS concepts", LABELS, len(labels)),
        space_check,
    ]
    return PublishedSketches(
        name="seva_clipasso",
        table=table,
        labels=labels,
        images=source,
        condition_unit="strokes",
        semantic_space=space,
        responses=replace(answers, dropped={**trials_dropped, **answers.dropped}),
        dropped=dict(dropped),
        flags=(*space_flags, *settle(checks, on_count, f"seva_clipasso {folder}")),
        source=f"CLIPasso sketches of SEVA (Mukherjee et al. 2023), {REPOSITORY}, MIT licence",
        rows_read={MACHINE_TRIALS: rows, CONCEPTS: len(labels)},
        checks=tuple(checks),
        probabilities=folder / MACHINE_PROBABILITIES,
    )
