import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks.seva_people import code_people
from humanlike.types import GUESS_COLUMNS, Responses

LABELS = ("ant", "bat", "cat")


def responses(*rows) -> Responses:
    full = [(*row, *[None] * (7 - len(row))) for row in rows]
    return Responses(pd.DataFrame(full, columns=["participant", "sketch_id", *GUESS_COLUMNS]))


def test_guesses_become_label_indices_sorted_by_participant_and_item():
    people = code_people(responses(("q", "b", "cat"), ("p", "b", "bat", "ant"), ("p", "a", "ant")), ["a", "b"], LABELS)
    coded = people.responses
    assert coded.participant_R.tolist() == [0, 0, 1]
    assert coded.item_R.tolist() == [0, 1, 1]
    assert coded.guess_RG[:, :2].tolist() == [[0, -1], [1, 0], [2, -1]]
    assert people.num_participants == 2


def test_judgments_of_other_sketches_are_counted_and_left_out():
    people = code_people(responses(("p", "a", "ant"), ("p", "gone", "bat")), ["a"], LABELS)
    assert len(people.responses) == 1
    assert people.dropped["judgments_of_other_sketches"] == 1


def test_order_of_the_rows_does_not_matter():
    rng = np.random.default_rng(0)
    rows = [(f"p{i % 4}", f"s{rng.integers(5)}", LABELS[rng.integers(3)], LABELS[rng.integers(3)]) for i in range(40)]
    one, two = (code_people(responses(*r), [f"s{i}" for i in range(5)], LABELS).responses for r in (rows, rows[::-1]))
    for name in ("participant_R", "item_R", "guess_RG"):
        assert np.array_equal(getattr(one, name), getattr(two, name))


def test_unknown_labels_raise_with_their_rows_or_are_dropped_and_counted():
    given = responses(("p", "a", "ant"), ("p", "b", "dog", "cat"), ("q", "a", "bat", "dgo"))
    with pytest.raises(ValueError, match=r"2 guess\(es\) in 2 row\(s\).*'dog' in row 1, guess_1 \(rows 1, 2\)"):
        code_people(given, ["a", "b"], LABELS)
    people = code_people(given, ["a", "b"], LABELS, on_unknown="drop")
    assert people.responses.guess_RG[:, :2].tolist() == [[0, -1], [1, -1]]
    assert people.dropped == {
        "judgments_of_other_sketches": 0,
        "guesses_outside_the_labels": 2,
        "judgments_with_unknown_first_guess": 1,
    }


def test_a_missing_first_guess_and_a_misspelt_choice_are_named():
    with pytest.raises(ValueError, match="guess_1 is missing in row 1"):
        code_people(responses(("p", "a", "ant"), ("p", "a", None, "bat")), ["a"], LABELS)
    with pytest.raises(ValueError, match="on_unknown is 'ignore'"):
        code_people(responses(("p", "a", "ant")), ["a"], LABELS, on_unknown="ignore")
