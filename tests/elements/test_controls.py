"""Controls are parts of other things, and no cousin of the concept's own parts."""

from __future__ import annotations

import pytest

from humanlike.data.doodles import doodles
from humanlike.elements.annotation import AnnotationJudge, annotated_elements
from humanlike.elements.controls import ANY_LINES, asks_anything, beside, draw_controls
from humanlike.elements.lists import shipped
from humanlike.elements.presence_judges import CrossFittedJudge

LISTS = {
    "owl": ("beak", "eye", "wing", "claw"),
    "duck": ("beak", "foot", "wing"),
    "face": ("eye", "pupil", "nose"),
    "cup": ("handle", "saucer", "rim"),
    "car": ("front wheel", "window", "bumper"),
    "bike": ("wheel", "pedal", "saddle"),
}


def test_what_is_near_in_meaning_is_no_control():
    found = draw_controls(LISTS, 2, vocabulary={})
    for concept, controls in found.items():
        assert len(set(controls)) == 2
        assert not set(controls) & set(LISTS[concept])
    every = draw_controls(LISTS, 6, vocabulary={})
    # An eye makes owl and face alike, so that no pupil is asked of an owl; a rim is of nearly any drawing.
    others = {"handle", "saucer", "front wheel", "window", "bumper", "pedal", "wheel", "saddle"}
    assert set(every["owl"]) <= others
    assert not {"pupil", "nose", "foot", "rim"} & set(every["owl"])
    assert not {"wheel", "pedal", "saddle"} & set(draw_controls(LISTS, 3, vocabulary={})["car"])


def test_draws_have_an_address():
    alone = draw_controls({"owl": LISTS["owl"]}, 2)
    assert draw_controls({"owl": LISTS["owl"], "cup": LISTS["cup"]}, 2)["owl"] == alone["owl"]
    assert draw_controls(LISTS, 2, seed=1) != draw_controls(LISTS, 2, seed=2)


def test_controls_of_the_demo_share_no_word_with_its_lists():
    elements = annotated_elements(doodles(instances=1, judgments=0))
    controls = draw_controls(elements, 3)
    lists = {**dict(shipped().items()), **elements}
    for concept, row in controls.items():
        own = {w for e in elements[concept] for w in e.split()}
        for control in row:
            assert not own & set(control.split())
            assert not ANY_LINES & set(control.split())
            holders = [c for c, parts in lists.items() if control in parts]
            assert holders
            shared = [len((own - ANY_LINES) & {w for e in lists[c] for w in e.split()}) for c in holders]
            assert max(shared) <= 2
    order = beside(elements, controls)
    last = sum(order[c][-1] in controls[c] for c in order) / len(order)
    assert 0.05 < last < 0.7


def test_too_few_are_told():
    with pytest.raises(ValueError, match=r"a: 1 elements of other concepts are unlike its own, but 2 controls"):
        draw_controls({"a": ("x", "y"), "b": ("z",)}, 2, vocabulary={})
    with pytest.raises(ValueError, match="at least 1"):
        draw_controls(LISTS, 0)


def test_judges_of_a_fixed_list_are_asked_none():
    assert not asks_anything(AnnotationJudge())
    assert not asks_anything(CrossFittedJudge())
    assert asks_anything(object())
