"""The page of a survey in a real browser: keyboard, touch, reload, export, phone, dark, and nothing from outside."""

from __future__ import annotations

import json

import pytest

from humanlike.data.survey import RatingScale
from humanlike.data.survey_exports import session_of
from humanlike.data.survey_responses import read_survey_responses

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SHOWN = "session.question.shown"
EXPORT = "JSON.parse(document.getElementById('export').value)"


def start(browser, participant="P01"):
    """From the start page by keyboard alone: tick, Tab, type, Enter."""
    browser.run("document.getElementById('consent').focus()")
    browser.key(" ", "Tab")
    browser.type(participant)
    browser.key("Enter")
    assert browser.run("document.getElementById('start').hidden")


def ranks(table, item):
    own = table[table["item"] == item].sort_values("rank")
    return own["sketch_id"].tolist()


def test_a_ranking_by_keyboard_alone(browser, make_survey, page_of, tmp_path):
    survey, _ = made = make_survey("ranking", questions=4)
    browser.open(page_of(made))
    start(browser)
    given = {}
    orders = [("3", "1"), ("1", "2"), ("2", "3"), ("1", "3")]
    for number, keys in enumerate(orders):
        assert browser.run("document.getElementById('count').textContent") == f"Question {number + 1} of 4"
        item, shown = browser.run(f"[session.question.id, {SHOWN}]")
        browser.key("Enter")  # nothing happens before all have a place
        assert browser.run("session.position") == number
        browser.key(*keys)  # the third place follows
        places = [int(k) - 1 for k in keys]
        given[item] = [shown[i] for i in [*places, *({0, 1, 2} - set(places))]]
        assert "third" in browser.run("document.getElementById('live').textContent")
        browser.key("Enter")
    export = browser.run(EXPORT)
    assert {a["item"]: a["order"] for a in export["answers"]} == given
    assert export["complete"] is True
    assert export["fingerprint"] == survey.fingerprint
    assert all(0 < a["seconds"] < 60 for a in export["answers"])
    assert browser.problems() == []

    browser.click("#download")
    saved = browser.downloaded()
    assert saved.name == f"P01_{survey.fingerprint}.json"
    responses = read_survey_responses([saved], survey)
    assert {item: ranks(responses.table, item) for item in given} == given
    assert responses.participants["complete"].tolist() == [True]


def test_arrows_backspace_and_space_correct_an_order(browser, make_survey, page_of):
    browser.open(page_of(make_survey("ranking", questions=2)))
    start(browser)
    shown = browser.run(SHOWN)
    browser.key("ArrowRight", "ArrowRight", " ")  # first card, second card, chosen
    assert browser.run("control.order") == [1]
    browser.key("ArrowLeft", " ")  # the last place is filled, focus is on Next
    assert browser.run("[control.order, document.activeElement.id]") == [[1, 0, 2], "next"]
    browser.key("Backspace")  # takes the second choice back, and what followed by itself
    assert browser.run("[control.order, document.getElementById('next').disabled]") == [[1], True]
    browser.key("1", "1", "3")  # chosen and the last place filled; 1 taken back; 3 was the last: taken back too
    assert browser.run("control.order") == [1]
    browser.key("3", "Enter")
    assert browser.run("session.given")[browser.run("session.questions[0].id")]["value"] == [1, 2, 0]
    browser.click("#back")
    assert browser.run("[control.order, session.question.shown]") == [[1, 2, 0], shown]
    assert browser.run("document.querySelectorAll('.pick')[1].querySelector('.place').textContent") == "first"


def test_a_ranking_by_touch_on_a_phone_resumes_after_a_reload(browser, make_survey, page_of):
    made = make_survey("ranking", questions=3, checks=1)
    browser.phone(360, 640)
    page = page_of(made)
    browser.open(page)
    widths = "[document.documentElement.scrollWidth, innerWidth]"
    assert browser.run(widths) == [360, 360]
    browser.touch("#consent")
    browser.touch("#participant")
    browser.type("Zoë 7")
    browser.touch("#start .main")
    order, given = browser.run("session.questions.map((q) => [q.id, q.shown])"), []
    for number in range(4):
        assert browser.run(widths) == [360, 360]
        height = browser.run("document.getElementById('next').getBoundingClientRect().bottom")
        if not browser.run("session.question.check"):
            assert height <= 640, "an ordinary question must fit the screen"
        expected = browser.run("session.question.check")
        first, second = (expected or [2, 1])[:2]
        browser.touch(".pick", first)
        browser.touch(".pick", second)
        given.append([first, second, 3 - first - second])
        browser.touch("#next")
        if number == 1:
            browser.reload()
            assert browser.run("document.getElementById('count').textContent") == "Question 3 of 4"
            assert "Zoë 7" in browser.run("document.getElementById('welcome').innerText")
            assert browser.run("session.questions.map((q) => [q.id, q.shown])") == order
    export = browser.run(EXPORT)
    told = {a["item"]: a["order"] for a in export["answers"]} | {c["item"]: c["given"] for c in export["checks"]}
    assert told == {item: [shown[i] for i in g] for (item, shown), g in zip(order, given, strict=True)}
    assert export["checks"][0]["given"] == export["checks"][0]["expected"]
    browser.reload()  # the end stays the end
    assert browser.run(EXPORT)["answers"] == export["answers"]
    assert browser.problems() == []


def test_everybody_has_an_order_of_their_own_and_always_the_same(browser, make_survey, page_of):
    browser.open(page_of(make_survey("ranking", questions=12, checks=3)))
    order = "JSON.stringify(questionsFor(%s).map((q) => [q.id, q.shown]))"
    one, again, other = (json.loads(browser.run(order % json.dumps(p))) for p in ("A", "A", "B"))
    assert one == again
    assert one != other
    assert sorted(one[0][1]) != one[0][1] or sorted(one[1][1]) != one[1][1] or one != sorted(one)
    assert sorted(q for q, _ in one) == sorted(q for q, _ in other)
    places = [i for i, (q, _) in enumerate(one) if q.startswith("check")]
    assert len(places) == 3
    assert [p // 5 for p in places] == [0, 1, 2]
    firsts = browser.run(
        "Array.from({length: 600}, (_, i) => questionsFor(`p${i}`)[0].id).reduce((n, q) => "
        "(n[q] = (n[q] || 0) + 1, n), {})"
    )
    assert set(firsts) == {f"q{i}" for i in range(12)}
    assert max(firsts.values()) < 90


@pytest.mark.parametrize("slider", [False, True])
def test_a_rating_by_keyboard(browser, make_survey, page_of, slider):
    scale = RatingScale(0, 100, 5, slider=True) if slider else RatingScale()
    made = make_survey("rating", questions=3, checks=0 if slider else 1, scale=scale)
    survey = made[0]
    browser.open(page_of(made))
    start(browser)
    given = {}
    for number in range(len(survey.questions)):
        item, check = browser.run("[session.question.id, session.question.check]")
        assert browser.run("document.getElementById('next').disabled")
        if slider:
            browser.key("ArrowRight", *["ArrowRight"] * number, "ArrowLeft", "ArrowRight")
            given[item] = 50 + 5 * (number + 1)
        elif check:
            browser.key("7", str(check[0]))
            given[item] = check[0]
        else:
            browser.key("4", "ArrowRight") if number else browser.key("ArrowLeft")
            given[item] = 5 if number else 7
        browser.key("Enter")
    export = browser.run(EXPORT)
    told = {a["item"]: a["rating"] for a in export["answers"]} | {c["item"]: c["given"] for c in export["checks"]}
    assert told == given
    session = session_of(export, "page", set(survey.sketch_ids))
    assert session.checks_failed == 0
    assert len(session.table) == 3
    assert browser.problems() == []


def test_ratings_by_touch(browser, make_survey, page_of):
    browser.phone(360, 640)
    browser.open(page_of(make_survey("rating", questions=2)))
    browser.run("begin('P')")
    assert browser.run("document.documentElement.scrollWidth") == 360
    assert browser.run("document.getElementById('next').getBoundingClientRect().bottom") <= 640
    sizes = browser.run("[...document.querySelectorAll('.steps label')].map((e) => e.getBoundingClientRect().height)")
    assert min(sizes) >= 44
    for rating in (6, 2):
        browser.touch(".steps input", rating - 1)
        browser.touch("#next")
    assert [a["rating"] for a in browser.run(EXPORT)["answers"]] == [6, 2]


def test_a_slider_has_no_value_before_it_is_touched(browser, make_survey, page_of):
    browser.phone(360, 640)
    browser.open(page_of(make_survey("rating", questions=1, scale=RatingScale(0, 100, 5, slider=True))))
    browser.run("begin('P')")
    state = "[control.value, control.output.textContent, document.getElementById('next').disabled]"
    assert browser.run(state) == [None, "not rated yet", True]
    browser.key("Enter")
    assert browser.run("session.position") == 0
    browser.touch("#slide")  # where the handle stands: the middle
    assert browser.run(state) == [50, "50", False]


@pytest.mark.parametrize("allowed", [True, False])
def test_answers_can_be_copied(browser, make_survey, page_of, allowed):
    browser.open(page_of(make_survey("ranking", questions=1)))
    browser.run(
        "begin('P'); window.copied = null; document.addEventListener('copy', ({target: box}) => "
        "{ window.copied = box.value.slice(box.selectionStart, box.selectionEnd); })"
    )
    browser.key("1", "2", "Enter")
    way = "async (text) => { window.copied = text; }" if allowed else "async () => { throw new Error('denied'); }"
    browser.run(f"navigator.clipboard.writeText = {way}; 0")
    browser.click("#copy")
    browser.run("new Promise((done) => setTimeout(done, 50))")
    assert browser.run("document.getElementById('copy').textContent") == "Copied."
    assert json.loads(browser.run("window.copied")) == browser.run(EXPORT)


def test_the_start_asks_for_consent_and_a_code(browser, make_survey, page_of):
    browser.open(page_of(make_survey("ranking", questions=2)))
    browser.click("#start .main")
    problem = "document.getElementById('problem').textContent"
    assert "tick the box" in browser.run(problem)
    assert browser.run("document.activeElement.id") == "consent"
    browser.key(" ")
    browser.click("#start .main")
    assert browser.run("document.activeElement.id") == "participant"
    assert browser.run("session") is None
    browser.type("   ")
    browser.key("Enter")
    assert browser.run("session") is None


def test_the_next_participant_starts_anew_and_answers_can_be_deleted(browser, make_survey, page_of):
    browser.open(page_of(make_survey("ranking", questions=1)))
    start(browser, "P1")
    browser.key("1", "2", "Enter")
    browser.click("#fresh")
    start(browser, "P2")
    assert browser.run("session.given") == {}
    browser.key("3", "2", "Enter")
    browser.click("#forget")
    assert browser.run("Object.keys(localStorage).filter((k) => k.includes('session:')).length") == 2
    browser.click("#forget")
    assert browser.run("Object.keys(localStorage).filter((k) => k.includes('session:'))")[0].endswith(":P1")
    start(browser, "P1")  # back at the end, with what P1 gave
    assert browser.run(EXPORT)["answers"][0]["order"] == browser.run("session.questions[0].shown")


def test_answers_so_far_can_be_saved_and_a_full_storage_is_said(browser, make_survey, page_of):
    survey, _ = made = make_survey("ranking", questions=3)
    browser.open(page_of(made))
    browser.run("Storage.prototype.setItem = () => { throw new Error('full'); }; begin('P')")
    assert browser.run("document.getElementById('storage').hidden") is False
    browser.key("1", "2", "Enter")
    browser.click("#part")
    responses = read_survey_responses([browser.downloaded()], survey)
    assert responses.counts["participants_incomplete"] == 1
    assert responses.counts["judgments"] == 1


CONTRAST = """
(() => {
  const parts = (c) => c.match(/[\\d.]+/g).map(Number);
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } };
  const out = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || ["SCRIPT", "STYLE"].includes(e.tagName) || e.id === "live") continue;
    const [a, b] = [light(parts(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) out.push([e.tagName, e.className, e.textContent.trim().slice(0, 30), ratio]);
  }
  return out;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_and_every_control_has_a_name(browser, make_survey, page_of, scheme, tmp_path):
    browser.prefer(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    browser.open(page_of(make_survey("ranking", questions=1, checks=1)))
    assert browser.run(CONTRAST) == []
    browser.run("begin('P')")
    browser.key("2")
    assert browser.run(CONTRAST) == []
    assert browser.run("getComputedStyle(document.querySelector('.pick')).transitionDuration") == "0s"
    browser.key("1", "Enter", "3", "1", "Enter")
    assert browser.run(CONTRAST) == []
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "checkbox", "radio", "slider", "textbox", "progressbar", "image"}
    nameless = [n for n in nodes if n.get("role", {}).get("value") in roles and not n["ignored"]
                and not n.get("name", {}).get("value")]  # fmt: skip
    assert nameless == []


def test_a_blank_contrast_is_seen(browser, make_survey, page_of):
    browser.open(page_of(make_survey("ranking", questions=1)))
    browser.run("document.querySelector('h1').style.color = '#fafafa'")
    assert [found[0] for found in browser.run(CONTRAST)] == ["H1"]


def test_texts_cannot_break_the_page(browser, make_survey, page_of):
    nasty = "</script><script>document.body.remove()</script><b>"
    texts = {"title": nasty, "question": f"{nasty} {{concept}}"}
    browser.open(page_of(make_survey("ranking", questions=1, texts=texts)))
    assert browser.run("document.querySelector('#start h1').textContent") == nasty
    browser.run("begin('<img src=x onerror=alert(1)>')")
    assert browser.run("document.getElementById('question').textContent") == f"{nasty} owl"
    assert browser.problems() == []
