"""Scored are the sketches that people judged; the readout is fitted on these, or on all that there are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from humanlike.benchmarks.seva import SevaBenchmark
from humanlike.benchmarks.seva_training import ScoredPart
from humanlike.readouts import LogisticReadout

QUICK = {"replicates": 20, "splits": 4}


@pytest.fixture
def partly_judged(study, features_of):
    """The made-up study in which two of six images of every concept were not shown to people; one item is broken."""
    data, features = study
    judged_N = ~data.table["image_id"].str[-1].isin(["4", "5"]).to_numpy()
    table = data.table.assign(judged=judged_N)
    seen = set(table.loc[judged_N, "sketch_id"])
    answers = data.responses.table[data.responses.table["sketch_id"].isin(seen)]
    broken = int(np.flatnonzero(judged_N)[3])
    responses = replace(data.responses, table=answers)
    return replace(data, table=table, responses=responses), features_of(features.f_ND, [broken]), judged_N, broken


def run(data, features, readout):
    return SevaBenchmark(**QUICK).run(data, features, readout)


def test_by_default_only_judged_sketches_count(partly_judged):
    data, features, judged_N, broken = partly_judged
    rows = np.flatnonzero(judged_N)
    place = int(np.flatnonzero(rows == broken)[0])
    alone = replace(
        features,
        f_ND=features.f_ND[judged_N[features.rows]],
        rows=np.setdiff1d(np.arange(len(rows)), [place]),
        failed={place: "broken"},
    )
    whole = run(data, features, LogisticReadout(n_splits=3))
    part = run(data.select(rows), alone, LogisticReadout(n_splits=3))
    assert whole.counts == part.counts
    assert whole.counts["items_failed"] == 1
    assert whole.counts["items_total"] == len(rows)
    assert whole.scores == part.scores
    assert whole.items["error"].notna().sum() == 1


def test_all_sketches_can_train_the_readout(partly_judged):
    """Referee: the readout called by hand on all rows, in order of the ids, judged ones first."""
    data, features, judged_N, _ = partly_judged
    readout = LogisticReadout(n_splits=3, train_on="all")
    result = run(data, features, readout)
    rows = np.array(sorted(features.rows, key=lambda r: (not judged_N[r], data.table["sketch_id"].iloc[r])))
    place = {int(r): i for i, r in enumerate(features.rows)}
    order = [place[int(r)] for r in rows]
    f_ND, label_N = features.f_ND[order], data.target_N[rows]
    image_id = data.table["image_id"].iloc[rows].to_numpy()
    judged_first = sorted(set(image_id[judged_N[rows]]))
    codes = {name: i for i, name in enumerate([*judged_first, *sorted(set(image_id) - set(judged_first))])}
    by_hand = LogisticReadout(n_splits=3)
    p_NL = by_hand.out_of_fold_proba(f_ND, label_N, len(data.labels), np.array([codes[name] for name in image_id]))
    expected = dict(zip(data.table["sketch_id"].iloc[rows], p_NL.argmax(1), strict=True))
    known = result.items[result.items["error"].isna()]
    assert known["top1_index"].tolist() == [expected[i] for i in known["sketch_id"]]
    certificate = result.details["readout"]
    assert certificate["further_items"] == int((~judged_N).sum())
    assert sum(certificate["train_sizes"]) == 2 * len(rows)
    assert certificate["train_on"] == "all"
    assert result.counts["items_total"] == int(judged_N.sum())


def test_a_further_sketch_of_a_scored_source_is_in_its_fold(study):
    data, features = study
    judged_N = data.table["condition"].to_numpy() != 32.0  # every photograph has a further, unjudged sketch
    data = replace(data, table=data.table.assign(judged=judged_N), responses=None)
    part = ScoredPart(data)
    readout = LogisticReadout(n_splits=3, train_on="all")
    with_more = part.readout(readout, features)
    scored = part.features(features)
    groups = np.unique(part.data.table["image_id"], return_inverse=True)[1]
    with_more.out_of_fold_proba(scored.f_ND, part.data.target_N, len(data.labels), groups)
    folds = readout.folds_
    further = data.table[~judged_N].sort_values("sketch_id")["image_id"].tolist()
    fold_of = dict(zip(part.data.table["image_id"], folds[: len(scored.f_ND)], strict=True))
    assert [fold_of[name] for name in further] == folds[len(scored.f_ND) :].tolist()


def test_a_data_set_that_is_judged_throughout_is_left_alone(study):
    data, features = study
    part = ScoredPart(data)
    readout = LogisticReadout(train_on="all")
    assert part.data is data
    assert part.features(features) is features
    assert part.readout(readout, features) is readout


def test_nothing_judged_is_an_error(study):
    data, _ = study
    with pytest.raises(ValueError, match="nothing to score"):
        ScoredPart(replace(data, table=data.table.assign(judged=False)))


def test_train_on_is_checked():
    with pytest.raises(ValueError, match="train_on must be one of recognition_set, all"):
        LogisticReadout(train_on="everything")
