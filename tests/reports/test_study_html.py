from __future__ import annotations

import re

import pandas as pd
import pytest

from humanlike.reports.study_figures import study_figures
from humanlike.reports.study_gallery import GalleryRow
from humanlike.reports.study_html import render_study, study_svg, write_study_report


@pytest.fixture
def gallery(make_examples) -> list[GalleryRow]:
    own = tuple(make_examples(1))
    return [
        GalleryRow("castle", "drawn by people", "s", own, (1, 2, 3, 4), 4),
        GalleryRow("castle", "drawn by CLIPasso", "strokes", own, (None,) * 4),
    ]


@pytest.fixture
def page_text(study_record, study_tables, study_svgs, gallery) -> str:
    return render_study(study_record, study_tables, study_svgs, gallery=gallery, bibtex="@article{seva}")


def test_the_page_holds_everything_and_nothing_from_outside(page_text, study_svgs, parsed):
    text = page_text
    page = parsed(text)
    page.assert_whole()
    assert not re.search(r"@import|url\((?!#)", text)
    said = " ".join(page.texts)
    for wanted in (
        "Nothing on this page says anything about human beings.", "twin (simulated)", "simulated people", "net failed",
        "vgg19: 3 sketches were not answered", "one participant only", "no reason", "⚠ no", "⚠ yes", "89698.0",
        "cv: not computed (needs new readouts).", "0.500 ▲0.100",
        "3 of 4 models right", "drawn by CLIPasso", "4 strokes",
        "@article{seva}", "ef" * 32, "cd" * 32, "set by hand", "drawn by a program", "1.5", "***",
    ):  # fmt: skip
        assert wanted in said, wanted
    assert "abc123" not in text
    ids = [value for _, key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    targets = {v for _, k, v in page.attributes if k in ("aria-labelledby", "for", "data-table", "data-count")}
    targets |= {v[1:] for t, k, v in page.attributes if t == "a" and k == "href"}
    assert targets <= set(ids)
    assert text.count("<figure>") == len(study_svgs)
    assert "#ffffff" not in text[text.index("<main>") : text.index("How to cite")].replace("background: #fff", "")


def test_every_figure_and_region_has_a_name(page_text, parsed):
    page = parsed(page_text)
    labels = [v for t, k, v in page.attributes if t == "svg" and k == "aria-label"]
    assert "SNP, alignment with simulated people (Figure 5)" in labels
    assert all(labels)
    scrolled = [1 for _, k, v in page.attributes if k == "class" and v and v.split()[0] == "scroll"]
    focusable = [1 for t, k, v in page.attributes if t == "div" and k == "tabindex"]
    assert len(scrolled) == len(focusable)


@pytest.mark.parametrize("evil", ['<script>alert("x")</script>', '"><img src=x onerror=alert(1)>', r"{{ 7*7 }}\1&amp;"])
def test_everything_is_escaped(page_text, study_tables, gallery, evil, parsed):
    tables = {
        name: table.map(lambda v: evil if isinstance(v, str) and v != "people" else v)
        for name, table in study_tables.items()
        if name not in ("spearman", "discrepancy")
    }
    tables["models"] = study_tables["models"].assign(observer=[f"{evil}{i}" for i in range(4)])
    tables[evil] = pd.DataFrame({evil: [evil]})
    record = {evil: {evil: evil}, "dataset": evil, "source": evil, "flags": [evil], "models_failed": {evil: evil},
              "missing": {evil: evil}, "protocol": {evil: evil}, "hashes": {evil: evil}}  # fmt: skip
    drawn = study_figures({name: tables[name] for name in ("models", "machine_levels", "layers")})
    rows = [GalleryRow(evil, evil, evil, gallery[0].examples, (1,) * 4, 4)]
    text = render_study(record, tables, {**drawn, evil: drawn["machine_levels"]}, gallery=rows, bibtex=evil)
    page = parsed(text)
    assert evil in " ".join(page.texts)
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert text.count("<script") == page_text.count("<script") == 1
    assert text.count("<img") == 4


def test_a_study_of_next_to_nothing_is_a_page(parsed):
    text = render_study({"missing": {"alignment": "nobody judged these sketches"}}, {}, {})
    page = parsed(text)
    said = " ".join(page.texts)
    assert "No alignment could be computed: nobody judged these sketches." in re.sub(r"\s+", " ", said).replace(
        " .", "."
    )
    assert "it was not computed" in said
    assert "simulat" not in said
    assert parsed(render_study({}, {}, {})).texts


def test_a_simulated_model_is_said_once_and_tables_keep_their_order(study_record, study_tables):
    flags = ["simulated_participants", "simulated_model:twin", "simulated_model:other"]
    text = render_study({**study_record, "flags": flags}, study_tables, {})
    assert text.count("<li>Simulated models, whose answers were made up: twin (simulated).</li>") == 1
    assert "The model twin is a simulation" not in text
    assert "The model other is a simulation" in text
    heads = re.findall(r'<h3 id="t-([^"]+)"', text)
    assert heads.index("conditions") < heads.index("alignment") < heads.index("spearman") < heads.index("rank_groups")


def test_colours_follow_the_page(study_svgs):
    element = study_svg("conditions_accuracy", "Accuracy <1>", study_svgs["conditions_accuracy"])
    for variable in ("--ink", "--self", "--language", "--model", "--people"):
        assert f"var({variable})" in element, variable
    assert 'aria-label="Accuracy &lt;1&gt;"' in element


def test_write_study_report(tmp_path, study_record, study_tables):
    write_study_report(tmp_path / "report.html", study_record, study_tables, {})
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text == render_study(study_record, study_tables, {})
