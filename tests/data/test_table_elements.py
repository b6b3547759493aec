"""Annotations of elements as a table: read, cut to the sketches there are, and faults named with their rows."""

import pytest

from humanlike.data.table_elements import read_elements


def elements(tmp_path, *rows, **options):
    path = tmp_path / "elements.csv"
    path.write_text("sketch_id,element,drawn\n" + "".join(f"{row}\n" for row in rows))
    return read_elements(path, ["a", "b"], **options)


def test_words_for_true_and_false(tmp_path):
    found = elements(tmp_path, "a,ear,true", "a,tail,0", "b,ear,Yes", "b,tail,FALSE")
    assert found["drawn"].tolist() == [True, False, True, False]
    assert found["sketch_id"].tolist() == ["a", "a", "b", "b"]


def test_rows_of_sketches_left_out_are_passed_over(tmp_path):
    found = elements(tmp_path, "a,ear,1", "gone,ear,1", removed_ids=["gone"])
    assert found["sketch_id"].tolist() == ["a"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["a,ear,perhaps"], "drawn is 'perhaps' in row 1; it must be true or false"),
        (["a,ear,1", "a,,1"], "element is empty in row 2"),
        (["a,ear,1", "a,ear,0"], "sketch 'a' has the element 'ear' again in row 2"),
        (["c,ear,1"], r"1 row\(s\) are about sketches that are not there, first 'c' \(row 1\)"),
    ],
)
def test_faults_are_named(tmp_path, rows, said):
    with pytest.raises(ValueError, match=said):
        elements(tmp_path, *rows)
