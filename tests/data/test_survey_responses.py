"""Answers to a survey: what is read, and every way in which a file can be wrong, named with its place."""

from __future__ import annotations

import copy
import json

import pandas as pd
import pytest

from humanlike.data.survey import RatingScale, Survey, SurveyCheck, SurveyItem, read_survey, write_survey
from humanlike.data.survey_exports import SCHEMA
from humanlike.data.survey_responses import read_survey_responses

SURVEY = Survey(
    "ranking",
    (SurveyItem("t1", ("a", "b", "c"), "owl"), SurveyItem("t2", ("b", "c", "d"), "owl")),
    (SurveyCheck("check-1", ("a", "b", "c"), (2, 0, 1)),),
    images=dict.fromkeys("abcd", "0" * 64),
)
RATED = Survey("rating", (SurveyItem("s1", ("a",)), SurveyItem("s2", ("b",))), scale=RatingScale(1, 7))


def ranked(participant="P1", survey=SURVEY, passed=True):
    """What the page would export."""
    return {
        "schema": SCHEMA, "fingerprint": survey.fingerprint, "kind": "ranking", "participant": participant,
        "complete": True, "questions": 2, "scale": None,
        "answers": [
            {"item": "t2", "position": 1, "shown": ["c", "b", "d"], "order": ["d", "c", "b"], "seconds": 2.5},
            {"item": "t1", "position": 3, "shown": ["a", "b", "c"], "order": ["a", "c", "b"], "seconds": 1.25},
        ],
        "checks": [
            {"item": "check-1", "position": 2, "shown": ["a", "b", "c"], "expected": ["c", "a", "b"],
             "given": ["c", "a", "b"] if passed else ["a", "b", "c"], "seconds": 1}
        ],
    }  # fmt: skip


def rated(participant="P1", ratings=(3, 7)):
    return {
        "schema": SCHEMA, "fingerprint": RATED.fingerprint, "kind": "rating", "participant": participant,
        "complete": True, "scale": {"low": 1, "high": 7, "step": 1, "slider": False}, "checks": [],
        "answers": [{"item": f"s{i}", "shown": [s], "rating": r, "seconds": 1} for i, (s, r) in
                    enumerate(zip("ab", ratings, strict=True), 1)],
    }  # fmt: skip


@pytest.fixture
def saved(tmp_path):
    def save(*records):
        for number, record in enumerate(records):
            (tmp_path / f"{number}.json").write_text(json.dumps(record))
        return tmp_path

    return save


def test_an_export_becomes_a_table(saved):
    found = read_survey_responses([saved(ranked(), ranked("P2"))], SURVEY)
    own = found.table[found.table["participant"] == "P2"]
    assert own[["item", "sketch_id", "rank", "seconds"]].values.tolist() == [
        ["t2", "d", 1, 2.5], ["t2", "c", 2, 2.5], ["t2", "b", 3, 2.5],
        ["t1", "a", 1, 1.25], ["t1", "c", 2, 1.25], ["t1", "b", 3, 1.25],
    ]  # fmt: skip
    assert found.fingerprint == SURVEY.fingerprint
    assert found.counts == {
        "participants": 2, "participants_excluded": 0, "participants_incomplete": 0, "judgments": 4,
        "judgments_excluded": 0,
    }  # fmt: skip


def test_who_fails_a_check_is_left_out_and_counted(saved):
    folder = saved(ranked(), ranked("P2", passed=False))
    found = read_survey_responses([folder], SURVEY)
    assert set(found.table["participant"]) == {"P1"}
    assert (found.counts["participants_excluded"], found.counts["judgments_excluded"]) == (1, 2)
    assert found.participants.set_index("participant")["excluded"].to_dict() == {"P1": False, "P2": True}
    assert read_survey_responses([folder], SURVEY, max_failed_checks=1).counts["participants"] == 2
    with pytest.raises(ValueError, match="nobody's answers are left: 1 of 1 people failed more than 0"):
        read_survey_responses([folder / "1.json"], SURVEY)


def changed(path, value, record=None):
    record = copy.deepcopy(record or ranked())
    place = record
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return record


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (changed(["answers", 1, "order"], ["a", "c"]), r"0\.json, answer 2 \(item t1\): 'order' .* 'b' is missing"),
        (changed(["answers", 1, "order"], ["a", "c", "c"]), r"answer 2 \(item t1\): 'order' is \['a', 'c', 'c'\]"),
        (changed(["answers", 0, "shown"], ["z", "b", "d"]), r"answer 1 \(item t2\): 'order'"),
        (changed(["answers", 0], {**ranked()["answers"][0], "shown": ["z", "c", "b"], "order": ["z", "c", "b"]}),
         r"answer 1 \(item t2\): there is no sketch 'z'"),
        (changed(["answers", 1, "item"], "t2"), r"answer 2 \(item t2\): item 't2' was answered before, in answer 1"),
        (changed(["answers", 1, "seconds"], -1), r"answer 2 \(item t1\): 'seconds' is -1"),
        (changed(["answers", 1, "item"], "t9"), r"answer 2 \(item t9\): the survey has no item 't9'"),
        (changed(["answers"], "cut"), r"0\.json: 'answers' must be a list of objects"),
        (changed(["checks", 0], {"item": "check-1"}), r"check 1: an attention check has 'expected' and 'given'"),
        (changed(["participant"], " "), r"0\.json: 'participant' is ' '"),
        (changed(["kind"], "guess"), r"kind is 'guess'; it must be 'ranking' or 'rating'"),
        (changed(["schema"], "other/1"), r"0\.json has the schema 'other/1', this version reads"),
        (changed(["fingerprint"], "beef"), r"answers a ranking with the fingerprint beef, but the survey given is"),
        (["a list"], r"has the schema 'list'"),
    ],
)  # fmt: skip
def test_a_wrong_export_is_refused_with_its_place(saved, record, said):
    with pytest.raises(ValueError, match=said):
        read_survey_responses([saved(record)], SURVEY)


@pytest.mark.parametrize("rating", [0, 8, 3.5, None, "3", True])
def test_ratings_lie_on_the_scale(saved, rating):
    with pytest.raises(ValueError, match=r"answer 2 \(item s2\): 'rating' is .*the scale goes from 1 to 7"):
        read_survey_responses([saved(rated(ratings=(3, rating)))], RATED)


def test_ratings_are_read(saved):
    found = read_survey_responses([saved(rated(), rated("P2", (1, 2)))], RATED)
    assert found.table["rating"].tolist() == [3, 7, 1, 2]
    assert found.kind == "rating"


def test_two_surveys_two_kinds_or_one_person_twice_are_not_mixed(saved):
    with pytest.raises(ValueError, match=r"0\.json answers the survey .* and .*1\.json the survey beef"):
        read_survey_responses([saved(ranked(), changed(["fingerprint"], "beef", ranked("P2")))])
    with pytest.raises(ValueError, match=r"0\.json is a ranking and .*1\.json a rating"):
        read_survey_responses([saved(ranked(), rated("P2"))])
    with pytest.raises(ValueError, match=r"1\.json and .*0\.json both hold answers by 'P1'"):
        read_survey_responses([saved(ranked(), ranked())])


def test_files_that_are_absent_or_cut(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file of answers .*absent\.json"):
        read_survey_responses([tmp_path / "absent.json"])
    with pytest.raises(FileNotFoundError, match=r"holds no answers \(\*\.json\)"):
        read_survey_responses([tmp_path])
    (tmp_path / "cut.json").write_text('{"schema": "huma')
    with pytest.raises(ValueError, match=r"cut\.json is not JSON"):
        read_survey_responses([tmp_path])


FLAT = pd.DataFrame(
    {"participant": ["P1"] * 3 + ["P2"] * 3, "item": "t1", "sketch_id": list("abc") * 2, "rank": [1, 2, 3, 3, 1, 2]}
)


def written(table, tmp_path, name="answers.csv"):
    path = tmp_path / name
    table.to_parquet(path) if name.endswith("parquet") else table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["answers.csv", "answers.parquet"])
def test_a_flat_table(tmp_path, name):
    found = read_survey_responses([written(FLAT.assign(seconds=2.0), tmp_path, name)], sketch_ids="abc")
    assert found.table["rank"].tolist() == [1, 2, 3, 3, 1, 2]
    assert found.fingerprint is None
    assert found.counts["judgments"] == 2
    assert found.participants["complete"].isna().all()


def test_what_was_read_is_read_again(tmp_path, saved):
    found = read_survey_responses([saved(ranked(), ranked("P2"))], SURVEY)
    table = found.table.assign(fingerprint=found.fingerprint)
    again = read_survey_responses([written(table, tmp_path)], SURVEY)
    pd.testing.assert_frame_equal(again.table.astype(object), found.table.astype(object))
    assert again.fingerprint == found.fingerprint


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rank": [1, 2, 2, 3, 1, 2]}, r"rows 1, 2, 3: 'P1' gave item 't1' the rank\(s\) 1, 2, 2"),
        ({"sketch_id": ["a", "b", "z"] * 2}, r"rows 3, 6: there is no sketch 'z'"),
        ({"sketch_id": ["a", "b", "b"] * 2}, r"rows 2, 3 are answers by 'P1' to the same question"),
        ({"rank": [1, 2, "x", 3, 1, 2]}, r"rank in row 3 is 'x'; it must be a number"),
        ({"participant": ["P1", None, "P1"] * 2}, r"participant is empty in rows 2, 5"),
        ({"rating": 3}, r"either a column 'rank' \(a ranking\) or a column 'rating'"),
        ({"fingerprint": ["x", "y", "x"] * 2}, r"answers by 'P1' have several fingerprints"),
    ],
)
def test_a_wrong_table_is_refused_with_its_rows(tmp_path, change, said):
    with pytest.raises(ValueError, match=said):
        read_survey_responses([written(FLAT.assign(**change), tmp_path)], sketch_ids="abc")


def test_a_table_counts_failed_checks(tmp_path):
    table = FLAT.assign(checks_failed=[0] * 3 + [2] * 3)
    assert read_survey_responses([written(table, tmp_path)]).counts["participants_excluded"] == 1


def test_a_survey_is_read_back_and_a_changed_one_is_not(tmp_path):
    write_survey(tmp_path / "survey.json", SURVEY)
    assert read_survey(tmp_path) == SURVEY
    record = json.loads((tmp_path / "survey.json").read_text())
    record["items"][0]["sketch_ids"] = ["a", "b", "d"]
    (tmp_path / "survey.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="it was changed after the page was made"):
        read_survey(tmp_path)
    (tmp_path / "survey.json").write_text(json.dumps({**record, "scale": {"lowest": 1}}))
    with pytest.raises(ValueError, match="lacks or misstates"):
        read_survey(tmp_path)


def test_a_fingerprint_changes_with_what_is_seen_and_not_with_where_it_came_from():
    base = {"kind": "rating", "items": RATED.items, "scale": RATED.scale}
    first = Survey(**base).fingerprint
    others = [
        Survey(**base, seed=1), Survey(**base, texts={"title": "x"}), Survey(**base, images={"a": "1"}),
        Survey(**{**base, "scale": RatingScale(1, 5)}), Survey(**{**base, "items": RATED.items[:1]}),
    ]  # fmt: skip
    assert len({first, *(o.fingerprint for o in others)}) == 6
    assert Survey(**base, source={"run": "x"}).fingerprint == first


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Survey("ranking", ()), "needs a question"),
        (lambda: Survey("ranking", SURVEY.items, scale=RatingScale()), "ratings need a scale, and only they"),
        (lambda: Survey("ranking", (SurveyItem("t", ("a", "a")),)), "two or more different sketches"),
        (lambda: Survey("rating", (SurveyItem("t", ("a", "b")),), scale=RatingScale()), "it needs one sketch"),
        (lambda: Survey("rating", RATED.items * 2, scale=RatingScale()), "occur twice"),
        (lambda: RatingScale(0, 10, 3), "does not end on its last step"),
        (lambda: RatingScale(0, 100), "too fine for buttons"),
        (lambda: Survey("guess", SURVEY.items), "kind is 'guess'"),
    ],
)
def test_what_is_no_survey_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_times_that_are_no_numbers_are_named(tmp_path):
    table = pd.DataFrame({"participant": "P1", "item": "t1", "sketch_id": list("abc"), "rank": [1, 2, 3]})
    table.assign(seconds=[1.5, None, 2.0]).to_csv(tmp_path / "good.csv", index=False)
    assert read_survey_responses([tmp_path / "good.csv"]).table["seconds"].isna().tolist() == [False, True, False]
    for wrong in ("soon", "-3"):
        table.assign(seconds=["1.5", wrong, "2"]).to_csv(tmp_path / "wrong.csv", index=False)
        with pytest.raises(
            ValueError, match=rf"seconds in row 2 is '?{wrong}(\.0)?'?; it must be a number of 0 or more"
        ):
            read_survey_responses([tmp_path / "wrong.csv"])


def test_a_sketch_that_somebody_rated_twice_is_named(tmp_path):
    table = pd.DataFrame({"participant": "P1", "item": ["s1", "s2"], "sketch_id": "a", "rating": [1, 2]})
    table.to_csv(tmp_path / "twice.csv", index=False)
    with pytest.raises(ValueError, match=r"twice\.csv, row 2: 'P1' rated 'a' before, as another item"):
        read_survey_responses([tmp_path / "twice.csv"])
