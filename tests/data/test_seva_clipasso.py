"""CLIPasso's sketches: read as published, scored as a data set of their own, or for people's answers alone."""

import ast

import pandas as pd
import pytest

from humanlike.data.images import BadImageError
from humanlike.data.seva import seva_published
from humanlike.data.seva_clipasso import seva_clipasso_published


def test_the_published_layout(seva_small):
    data = seva_clipasso_published(seva_small, on_count="warn")
    people = seva_published(seva_small, on_count="warn")
    assert (data.name, data.condition_unit, len(data.labels)) == ("seva_clipasso", "strokes", 1854)
    assert len(data) == 63, "canvas_09s_32 is left out"
    assert data.responses.dropped == {
        "practice trial": 2,
        "trial without a sketch id": 1,
        "trial of sketch canvas_09s_32": 3,
        "empty response": 1,
    }
    assert data.table["num_strokes"].tolist() == data.table["condition"].tolist()
    assert set(data.table["image_id"]) == set(people.table["image_id"])
    assert data.table.groupby("image_id").size().value_counts().to_dict() == {4: 15, 3: 1}
    assert data.table["path"][0] == f"seva_clipasso_pngs/{data.table['sketch_id'][0]}.png"
    assert data.images.load(0).size == (24, 24)
    raw = pd.read_csv(seva_small / "machine_recog_df.csv")
    said = raw[raw["filename_recog"] == f"{data.table['sketch_id'][5]}.png"]
    own = data.responses.table[data.responses.table["sketch_id"] == data.table["sketch_id"][5]]
    expected = [next(iter(ast.literal_eval(text).values())) for text in said["response"]]
    assert own["guess_1"].tolist() == expected


def test_answers_alone_need_no_images(seva_copy):
    (seva_copy / "seva_clipasso_pngs.zip").unlink()
    with pytest.raises(FileNotFoundError, match=r"expected seva_clipasso_pngs\.zip or its folder, or name another"):
        seva_clipasso_published(seva_copy, on_count="warn")
    data = seva_clipasso_published(seva_copy, on_count="warn", images="none")
    assert len(data.responses.table) == 63 * 3
    assert len({data.images.content_hash(i) for i in range(len(data))}) == 63
    with pytest.raises(BadImageError, match="read with images=none"):
        data.images.load(0)


def test_refusals(seva_copy):
    with pytest.raises(ValueError, match="counts are not those of the published data: judged sketches: 63, expected"):
        seva_clipasso_published(seva_copy)
    for settings in ({"on_count": "no"}, {"on_missing_image": "skip"}):
        with pytest.raises(ValueError, match="must be"):
            seva_clipasso_published(seva_copy, **settings)
    trials = pd.read_csv(seva_copy / "machine_recog_df.csv", index_col=0)
    trials.loc[4, "abstraction"] = 5
    trials.to_csv(seva_copy / "machine_recog_df.csv")
    with pytest.raises(ValueError, match="abstraction is 5 in row 5; expected 4, 8, 16, 32 strokes"):
        seva_clipasso_published(seva_copy, on_count="warn")
    (seva_copy / "machine_recog_df.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"machine_recog_df\.csv \(people's answers to CLIPasso.*\) from"):
        seva_clipasso_published(seva_copy)
