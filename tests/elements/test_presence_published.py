"""What presence has to reach on real annotated sketches and on the doodles."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from humanlike.data.sketch_parts import reference_features, sketch_parts
from humanlike.elements.annotation import AnnotationJudge, annotated_elements
from humanlike.elements.presence_judges import CrossFittedJudge
from humanlike.metrics.functional.element_vqa import element_vqa_scores

pytestmark = pytest.mark.data


def scores(presence, truth):
    pairs = presence.against(truth)
    said = torch.tensor(pairs["decision"].astype("Float64").to_numpy(np.float64, na_value=np.nan))
    return element_vqa_scores(said[:, None], torch.tensor(pairs["annotated"].to_numpy())[:, None])


@pytest.mark.parametrize(("items", "closer", "further"), [("images", 4.5, 3.6), ("annotated", 4.4, 3.5)])
def test_people_draw_more_parts_where_objects_are_alike(shared_data, items, closer, further):
    data = sketch_parts(shared_data / "sketch_parts", items=items)
    ratio = AnnotationJudge().judge(data, annotated_elements(data)).visual_ratio
    mean = ratio.groupby(data.table["context"])[["num_present", "v"]].mean()
    assert mean["num_present"].round(1).to_dict() == pytest.approx({"closer": closer, "further": further}, abs=0.1)
    assert mean["v"]["closer"] > mean["v"]["further"]


def test_a_head_cross_validated_by_object_beats_constant_answers_and_base_rates(shared_data):
    root = shared_data / "sketch_parts"
    data = sketch_parts(root)
    elements, features = annotated_elements(data), reference_features(root, data, "clip_ViT_visual")
    truth = AnnotationJudge().judge(data, elements)
    head = scores(CrossFittedJudge().judge(data, elements, features), truth)
    base = scores(CrossFittedJudge(C=1e-9).judge(data, elements, features), truth)  # the rate of each pair alone
    assert head.coverage == 1
    assert head.balanced_accuracy > 0.72  # always "present" and always "absent" have .5
    assert head.balanced_accuracy > base.balanced_accuracy
    assert head.f1 > head.always_present_f1
