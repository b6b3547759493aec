"""A study of the published size, 27 people × 160 triples, through the page itself and on to the agreement."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from humanlike.benchmarks.human_agreement import human_agreement, read_survey_responses
from humanlike.benchmarks.survey_items import choose_triples
from humanlike.data.survey import Survey
from humanlike.reports.survey_page import picture, picture_hash, survey_texts, write_survey_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TAKE_PART = """
((participant, orders) => {
  begin(participant);
  while (!session.over) {
    const places = orders[session.question.id].map((id) => session.question.shown.indexOf(id));
    control.toggle(places[0]);
    control.toggle(places[1]);
    document.getElementById("next").click();
  }
  const text = document.getElementById("export").value;
  document.getElementById("fresh").click();
  return text;
})(%s)
"""


def test_27_people_order_160_triples(browser, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sketch_id": [f"s{i:03d}" for i in range(240)], "concept": "owl"})
    table["score"] = rng.uniform(-1, 1, 240)
    chosen = choose_triples(table, 160, seed=1)
    blank = np.full((64, 64, 3), 255, np.uint8)
    pictures = {}
    for i, sketch in enumerate(dict.fromkeys(chosen.table["sketch_id"])):
        blank[i % 60, i // 60 : i // 60 + 9] = 0
        pictures[sketch] = picture(Image.fromarray(blank))
    survey = Survey(
        "ranking", chosen.items, images={s: picture_hash(p) for s, p in pictures.items()}, texts=survey_texts("ranking")
    )
    page = tmp_path / "survey.html"
    write_survey_page(page, survey, pictures)
    browser.open(page)

    score = table.set_index("sketch_id")["score"]
    answers, accepted = tmp_path / "answers", []
    answers.mkdir()
    for person in range(27):
        orders = {}
        for item in survey.items:
            best = sorted(item.sketch_ids, key=lambda s: -score[s])
            orders[item.item] = best if rng.random() < 0.878 else [best[i] for i in rng.permutation(3)]
            accepted.append(orders[item.item] == best)
        text = browser.run(TAKE_PART % f"{json.dumps(f'P{person:02d}')}, {json.dumps(orders)}")
        (answers / f"{person}.json").write_text(text)
    assert browser.problems() == []

    responses = read_survey_responses([answers], survey)
    assert responses.counts["judgments"] == 27 * 160
    assert responses.counts["participants_incomplete"] == 0
    found = human_agreement(responses, score.to_frame("sea")).agreement.iloc[0]
    assert found["value"] == pytest.approx(np.mean(accepted), abs=1e-12)
    known = 0.878 + 0.122 / 6  # a shuffled order is the score's one time in six
    assert found["ci_low"] < known < found["ci_high"]
