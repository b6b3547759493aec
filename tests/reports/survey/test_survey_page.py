"""What can be told of a survey's page without a browser: it is whole, small, and says what it is given."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw

from humanlike.reports.survey_page import picture, render_survey, survey_texts


def test_the_page_is_one_file_with_everything_in_it(make_survey):
    survey, pictures = make_survey("ranking", questions=5, checks=1)
    page = render_survey(survey, pictures)
    assert not re.search(r"(?:src|href)=[\"'](?!data:)[^\"'#{$]", page)
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page
    assert "built-in" not in page
    assert "object at 0x" not in page
    data = json.loads(re.search(r'id="survey">(.*?)</script>', page, re.DOTALL)[1])
    assert data["fingerprint"] == survey.fingerprint
    assert len(data["images"]) == 15
    assert "source" not in data  # neither the run nor its scores


def test_a_page_of_the_published_size_weighs_little(make_survey):
    """160 triples at most 4 MB: 480 drawings of less than 8 kB each, measured on 24."""
    empty = len(render_survey(*make_survey("ranking", questions=1)))
    assert (len(render_survey(*make_survey("ranking", questions=8))) - empty) / 21 < 8_000
    assert empty < 60_000


def test_other_pictures_than_the_surveys_are_refused(make_survey):
    survey, pictures = make_survey("ranking", questions=1)
    with pytest.raises(ValueError, match="the picture of 'owl_0_1' is missing or another"):
        render_survey(survey, {**pictures, "owl_0_1": pictures["owl_0_0"]})
    with pytest.raises(ValueError, match="missing or another"):
        render_survey(replace(survey, images={}), pictures)


def test_a_drawing_is_small_and_still_the_drawing():
    big = Image.new("RGB", (512, 400), "white")
    ImageDraw.Draw(big).ellipse((80, 60, 420, 340), outline="black", width=8)
    png = picture(big)
    small = Image.open(io.BytesIO(png))
    assert small.size == (256, 200)
    assert len(png) < 6000
    expected = np.asarray(big.resize((256, 200), Image.Resampling.LANCZOS).convert("L"), float)
    assert np.abs(np.asarray(small.convert("L"), float) - expected).max() <= 17 / 2 + 1


def test_colours_stay_colours_and_small_pictures_are_not_blown_up():
    red = Image.new("RGB", (40, 40), "white")
    ImageDraw.Draw(red).line((5, 5, 35, 35), fill="red", width=5)
    back = np.asarray(Image.open(io.BytesIO(picture(red))).convert("RGB"), int)
    assert back.shape == (40, 40, 3)
    assert np.abs(back - np.asarray(red, int)).max() <= 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("titel: x", "says nothing called 'titel'; did you mean 'title'"),
        ("title: [x]", r"title must be a text, got \['x'\]"),
        ("consent: x", "consent must be a list of texts"),
        ("places: [a, b]", r"places must name 3 places"),
        ("- x", "must hold lines `name: text`"),
        ("a: [", "is not YAML"),
    ],
)
def test_texts_of_ones_own_are_checked(tmp_path, text, said):
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(ValueError, match=said):
        survey_texts("ranking", tmp_path / "own.yaml")


def test_texts_of_ones_own_replace_ours(tmp_path):
    (tmp_path / "de.yaml").write_text("language: de\nnext: Weiter\nplaces: [erste, zweite, dritte]\n")
    texts = survey_texts("ranking", tmp_path / "de.yaml")
    assert (texts["next"], texts["places"][2], texts["back"]) == ("Weiter", "dritte", "Back")
    with pytest.raises(FileNotFoundError, match="no file of texts"):
        survey_texts("rating", tmp_path / "absent.yaml")
