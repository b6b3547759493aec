"""The linter finds nothing in the shipped lists and everything in bad ones."""

from __future__ import annotations

import pytest

from humanlike.elements.linter import FEWEST, MOST, RULES, is_plural, lint
from humanlike.elements.lists import list_paths

HEADER = "superordinate: bird\nauthor: me\nreviewed: 2026-11\nlicence: CC0-1.0\nconcepts:\n"


@pytest.fixture
def problems(tmp_path):
    """Problems of a file with one list a line, as (line, element, rule)."""

    def check(*lists: str, exceptions: str = "", header: str = HEADER) -> list[tuple[int, str, str]]:
        file = tmp_path / "lists.yaml"
        file.write_text(header + "".join(f"  {line}\n" for line in lists) + exceptions, encoding="utf-8")
        return [(p.line, p.element, p.rule) for p in lint([file])]

    return check


@pytest.mark.parametrize("path", list_paths(), ids=lambda p: p.stem)
def test_a_shipped_file_has_no_problem(path):
    assert [str(p) for p in lint([path])] == []


def test_no_concept_stands_in_two_shipped_files():
    assert [str(p) for p in lint()] == []


def test_a_good_list_passes(problems):
    assert problems("owl: [beak, wing, eye, foot]") == []


@pytest.mark.parametrize(
    ("elements", "element", "rule"),
    [
        ("beak, wing, eye", "", "count"),
        (", ".join(f"part {'abcdefghijklm'[i]}" for i in range(13)), "", "count"),
        ("Beak, wing, eye, foot", "Beak", "letters"),
        ("beak, wing, eye, foot_1", "foot_1", "letters"),
        ("beak, wing, eye, ' foot'", " foot", "letters"),
        ("beak, wings, eye, foot", "wings", "singular"),
        ("beak, wing, eye, feet", "feet", "singular"),
        ("beak, wing, eye, tail feathers", "tail feathers", "singular"),
        ("beak, wing, eye, pairs of leg", "pairs of leg", "singular"),
        ("beak, wing, eye, foot, wing", "wing", "duplicate"),
        ("beak, wing, eye, ear tuft, ear-tuft", "ear-tuft", "duplicate"),
        ("beak, wing, eye, bill", "bill", "synonym"),
        ("beak, wing, eye, heart", "heart", "internal"),
        ("beak, wing, eye, leg bone", "leg bone", "internal"),
        ("beak, wing, eye, smell", "smell", "unseen"),
        ("beak, wing, eye, owl", "owl", "concept"),
    ],
)
def test_a_bad_list_is_found(problems, elements, element, rule):
    assert problems("lion: [mane, leg, tail, eye]", f"owl: [{elements}]") == [(7, element, rule)]


def test_the_concept_is_found_behind_its_digit_and_spelling(problems):
    assert problems("bat2: [bat, barrel, knob, tape]") == [(6, "bat", "concept")]
    assert problems("hot-air_balloon: [hot air balloon, basket, rope, flame]") == [(6, "hot air balloon", "concept")]


def test_all_problems_come_at_once_with_their_place(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text(HEADER + "  owl: [Beak, wings, heart]\n", encoding="utf-8")
    found = lint([file])
    assert {p.rule for p in found} == {"count", "letters", "singular", "internal"}
    assert all(str(p).startswith(f"{file}:6: owl: ") for p in found)


def test_a_concept_in_two_files_is_found(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(HEADER + "  owl: [beak, wing, eye, foot]\n", encoding="utf-8")
    (problem,) = lint([tmp_path / "a.yaml", tmp_path / "b.yaml"])
    assert (problem.path.name, problem.line, problem.concept) == ("b.yaml", 6, "owl")
    assert "a.yaml:6" in problem.message


def test_a_header_is_needed(problems):
    assert problems("owl: [beak, wing, eye, foot]", header="concepts:\n") == [(1, "", "file")] * 4


def test_an_exception_covers_one_element_and_one_rule(problems):
    excuse = "exceptions:\n  - {concept: owl, element: heart, rule: internal, reason: it is painted on the belly}\n"
    assert problems("owl: [beak, wing, eye, heart]", exceptions=excuse) == []
    assert problems("owl: [beak, wing, eye, hearts]", exceptions=excuse) == [
        (6, "hearts", "singular"),
        (8, "heart", "file"),
    ]
    assert problems("owl: [beak, wing, eye, foot]", exceptions=excuse) == [(8, "heart", "file")]
    wrong = excuse.replace("internal", "hidden")
    assert problems("owl: [beak, wing, eye, foot]", exceptions=wrong) == [(8, "heart", "file")]


def test_the_numbers_of_the_rules():
    assert (FEWEST, MOST) == (4, 12)
    assert len(set(RULES)) == len(RULES)


@pytest.mark.parametrize("noun", ["glass", "lens", "canvas", "pelvis", "cactus", "mattress", "pants", "nose", "moss"])
def test_singular_nouns(noun):
    assert not is_plural(noun)


@pytest.mark.parametrize("noun", ["wings", "teeth", "eyes", "glasses", "antennae", "keys", "leaves", "mice", "lenses"])
def test_plural_nouns(noun):
    assert is_plural(noun)
