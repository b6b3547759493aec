"""The page of an acceptance in a real browser: keys, touch on a phone, controls of everybody's own, export."""

from __future__ import annotations

import pytest

from humanlike.data.survey_responses import read_survey_responses

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WIDTHS = "[document.documentElement.scrollWidth, innerWidth]"


def test_orders_are_accepted_and_rejected_by_keys_and_by_touch(browser, make_survey, page_of):
    survey, _ = made = make_survey("acceptance", questions=8, checks=1)
    own = {item.item: list(item.sketch_ids) for item in survey.items}
    page = page_of(made)
    browser.open(page)
    browser.run("document.getElementById('consent').focus()")
    browser.key(" ", "Tab")
    browser.type("P01")
    browser.key("Enter")

    # by keys: letters, arrows, Enter; another key before Enter changes the answer
    keys = [
        ("y",),
        ("n",),
        ("Y",),
        ("ArrowRight",),
        ("ArrowLeft",),
        ("ArrowLeft", "ArrowRight"),
        ("n", "y"),
        ("y", "n"),
    ]
    answers = iter(zip(keys, [True, False, True, False, True, False, True, False], strict=True))
    given = {}
    for number in range(9):
        browser.key("Enter", "x")  # nothing was answered, so nothing happens
        assert browser.run("[session.position, control.value]") == [number, None]
        check, item = browser.run("[session.question.check, session.question.id]")
        if check:
            assert "No, I do not" in browser.run("document.getElementById('asked').textContent")
            browser.key("n", "Enter")
            continue
        pressed, given[item] = next(answers)
        browser.key(*pressed)
        assert browser.run("[...document.querySelectorAll('.steps input')].map((i) => i.checked)") == [
            given[item], not given[item],
        ]  # fmt: skip
        browser.key("Enter")
    export = browser.run("JSON.parse(document.getElementById('export').value)")
    assert {a["item"]: a["accepted"] for a in export["answers"]} == given
    assert sum(a["shown"] != own[a["item"]] for a in export["answers"]) == 2  # a quarter of eight
    assert all(sorted(a["shown"]) == sorted(own[a["item"]]) for a in export["answers"])
    assert (export["checks"][0]["expected"], export["checks"][0]["given"]) == (False, False)
    browser.click("#download")
    found = read_survey_responses([browser.downloaded()], survey)
    assert found.kind == "acceptance"
    assert found.table.drop_duplicates("item").set_index("item")["accepted"].to_dict() == given
    assert found.participants["checks_failed"].tolist() == [0]
    assert browser.run("begin('P01'); session.questions.map((q) => q.shown)") == browser.run(
        "questionsFor('P01').map((q) => q.shown)"
    )

    # by touch on a phone, where the order still goes from left to right
    browser.phone(360, 640)
    browser.run("restart()")
    browser.touch("#consent")
    browser.touch("#participant")
    browser.type("P02")
    browser.touch("#start .main")
    touched = {}
    for number in range(9):
        assert browser.run(WIDTHS) == [360, 360]
        lefts, tops = browser.run(
            "((boxes) => [boxes.map((b) => b.left), boxes.map((b) => b.top)])"
            "([...document.querySelectorAll('.row img')].map((i) => i.getBoundingClientRect()))"
        )
        assert lefts == sorted(lefts)
        assert len(set(tops)) == 1
        sources = browser.run("[...document.querySelectorAll('.row img')].map((i) => i.src)")
        assert sources == browser.run("session.question.shown.map((id) => SURVEY.images[id])")
        assert browser.run("document.querySelector('.steps span').getBoundingClientRect().height") >= 44
        check, item = browser.run("[session.question.check, session.question.id]")
        if not check:
            assert browser.run("document.getElementById('next').getBoundingClientRect().bottom") <= 640
        choice = 1 if check else number % 2
        browser.touch(".steps label", choice)
        if not check:
            touched[item] = choice == 0
        browser.touch("#next")
        if number == 3:
            browser.reload()
            assert browser.run("session.position") == 4
            browser.touch("#back")
            assert browser.run("control.value") is browser.run("session.given[session.question.id].value")
            browser.touch("#next")
    other = browser.run("JSON.parse(document.getElementById('export').value)")
    assert {a["item"]: a["accepted"] for a in other["answers"]} == touched
    assert browser.problems() == []


def test_controls_are_spread_evenly_over_items_orders_and_people(browser, make_survey, page_of):
    survey, _ = made = make_survey("acceptance", questions=8)
    browser.open(page_of(made))
    own = {item.item: list(item.sketch_ids) for item in survey.items}
    met = browser.run("Array.from({length: 1000}, (_, p) => questionsFor('P' + p).map((q) => [q.id, q.shown]))")
    items, orders = dict.fromkeys(own, 0), {}
    for questions in met:
        controls = [(item, shown) for item, shown in questions if shown != own[item]]
        assert len(controls) == 2
        for item, shown in controls:
            items[item] += 1
            order = tuple(own[item].index(sketch) for sketch in shown)
            orders[order] = orders.get(order, 0) + 1
    assert all(180 < count < 320 for count in items.values())  # 250 expected, standard deviation 14
    assert len(orders) == 5
    assert all(310 < count < 490 for count in orders.values())  # 400 expected, standard deviation 18
