"""Line drawings of 16 categories with the answers of ten people, published with the "texture or shape" study."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from humanlike.data.archives import open_archive
from humanlike.data.image_folder import sketches_from_archive
from humanlike.data.images import DecodeOptions
from humanlike.data.trials import STIMULUS, check_answers, people_responses, read_trials, without_repeats
from humanlike.files import sha256_value
from humanlike.types import ImageSource, Sketches

ARCHIVE = "images.zip"
RESPONSES = "responses.csv"
MAPPING = "imagenet_to_16.json"
REPOSITORY = "github.com/rgeirhos/texture-vs-shape"
_LAYOUT = re.compile(r"(?:images/)?(?P<concept>[^/]+)/(?P<image_id>[^/]+)\.png")


def line_edges(
    root: str | Path, mapping: str | Path | None = None, crop_pct: float = 0.875, background: str = "white"
) -> Sketches:
    """160 line drawings (edges of photographs, 10 images of 16 categories), each named by ten people.

    Args:
        root: Folder with `images.zip` (read in place) or the category folders, and `responses.csv`.
        mapping: JSON file, category → ImageNet class indices; its categories are the labels. Default: that in `root`.
        crop_pct: Share of a picture's side that the backbone's crop keeps, in (0, 1]. The drawings fill their frames
            and people saw all of them, so every drawing gets a white border just wide enough that the crop takes away
            nothing else; 1 adds none. (A crop of 0.875 without the border costs EfficientNet-Lite0 three points of
            accuracy, .325 instead of .356.)
        background: Colour of the border and under transparent pixels.

    Returns:
        The data set; `sketch_id` is the file's name below its archive, a missing answer stands as "na".

    Raises:
        FileNotFoundError: A file is missing, with where to get it.
        ValueError: A response names no image, or an answer is no category.

    References:
        Geirhos et al. (2019), "ImageNet-trained CNNs are biased towards texture". CC BY 4.0.
    """
    if not 0 < crop_pct <= 1:
        raise ValueError(f"crop_pct must lie in (0, 1], got {crop_pct}")
    folder = Path(root).expanduser()
    answers = folder / RESPONSES
    classes = Path(mapping).expanduser() if mapping is not None else folder / MAPPING
    for file in (answers, classes):
        if not file.is_file():
            raise FileNotFoundError(
                f"line_edges: there is no {file}; root holds {ARCHIVE}, {RESPONSES} and {MAPPING} (from {REPOSITORY})"
            )
    data = sketches_from_archive(
        open_archive(folder, ARCHIVE),
        _LAYOUT,
        options=DecodeOptions(background=background),
        labels=sorted(json.loads(classes.read_text(encoding="utf-8"))),
        name="line_edges",
        source=f"stimuli/edges and raw-data of {REPOSITORY}, CC BY 4.0",
    )
    images = data.images if crop_pct == 1 else BorderedImages(data.images, crop_pct, background)
    return _with_answers(replace(data, images=images), answers)


def _with_answers(data: Sketches, file: Path) -> Sketches:
    table = read_trials(file)
    if not {"observer", "image"} <= set(table.columns):
        raise ValueError(f"{file} needs the columns observer and image; it has {list(table.columns)}")
    concept_of = dict(zip(data.table["sketch_id"], data.table["concept"], strict=True))
    wrong = table["image"].map(concept_of) != table["category"]
    if wrong.any():
        row = table[wrong].iloc[0]
        raise ValueError(
            f"{file}: row {row['row']} is about {row['image']!r} of category {row['category']!r}, which is no image of "
            f"the data set ({int(wrong.sum())} such rows)"
        )
    people, _ = without_repeats(table[table["observer"] == "human"], "raise", str(file))
    check_answers(people, data.labels, str(file))
    stimulus_of_image = dict(zip(table["image"], table[STIMULUS], strict=True))
    items = data.table.assign(**{STIMULUS: data.table["sketch_id"].map(stimulus_of_image)})
    return replace(data, table=items, responses=people_responses(people, people["image"]))


@dataclass(frozen=True)
class BorderedImages:
    """Images with a border that a central crop takes away again.

    Attributes:
        base: The images.
        crop_pct: Share of the side that stays after the crop; the new side is the old one divided by it.
        background: Colour of the border.
    """

    base: ImageSource
    crop_pct: float
    background: str = "white"

    def __len__(self) -> int:
        return len(self.base)

    def load(self, index: int) -> Image.Image:
        """See ImageSource."""
        image = self.base.load(index)
        width, height = (math.floor(side / self.crop_pct) for side in image.size)
        sheet = Image.new("RGB", (width, height), self.background)
        sheet.paste(image, ((width - image.width) // 2, (height - image.height) // 2))
        return sheet

    def content_hash(self, index: int) -> str:
        """See ImageSource."""
        return sha256_value(["border", self.crop_pct, self.background, self.base.content_hash(index)])

    def describe(self, index: int) -> str:
        """See ImageSource."""
        return self.base.describe(index)
