"""The words of judges of elements: how they are calibrated, and how they answer "is this element drawn?"."""

from __future__ import annotations

from collections.abc import Mapping

TITLES: Mapping[str, str] = {
    "judge_sensitivity": "Judge's sensitivity, calibrated",
    "judge_specificity": "Judge's specificity, calibrated",
    "visual_ratio_corrected": "Visual ratio v, freed of the judge's errors",
    "sea_corrected": "SEA, freed of the judge's errors",
    "f1": "F1",
    "f1_gain": "F1 above always present",
    "f1_macro_class": "F1, mean over classes",
    "f1_macro_element": "F1, mean over elements",
    "always_present_f1": "F1 of always present",
    "balanced_accuracy": "Balanced accuracy",
    "present_rate_bias": "Bias to present",
    "accuracy_over_all": "Accuracy, unanswered as wrong",
}

SHORT_TITLES: Mapping[str, str] = {
    "judge_sensitivity": "Judge, sensitivity",
    "judge_specificity": "Judge, specificity",
    "visual_ratio_corrected": "v, corrected",
    "visual_ratio_corrected_low": "v, corrected, from",
    "visual_ratio_corrected_high": "v, corrected, to",
    "sea_corrected": "SEA, corrected",
    "sea_corrected_low": "SEA, corrected, from",
    "sea_corrected_high": "SEA, corrected, to",
    "f1_macro_class": "F1, classes",
    "f1_macro_element": "F1, elements",
    "always_present_f1": "F1, always present",
    "accuracy_over_all": "Accuracy, all",
}

MEANINGS: Mapping[str, str] = {
    "judge_sensitivity": "share of what is drawn that the judge calls present, on annotated sketches",
    "judge_specificity": "share of what is not drawn that the judge calls absent, on annotated sketches or controls",
    "visual_ratio_corrected": "what v would be without the judge's false positives and oversights",
    "sea_corrected": "mean over what each sketch may truly show, given what the judge said and how often it errs",
    "precision": "share of the elements called present that people see too",
    "recall": "share of the elements that people see that the judge sees too",
    "f1": "harmonic mean of precision and recall; read it beside that of a judge that always says present",
    "f1_gain": "what the judge adds to always saying present; at 0 or below, its F1 says nothing for it",
    "specificity": "share of the elements not drawn that the judge calls absent",
    "balanced_accuracy": "mean of recall and specificity; 0.5 for a judge that always answers the same",
    "present_rate_bias": "rate of \u201cpresent\u201d, judge − annotation; above 0 it sees too much",
    "coverage": "share of annotated elements that the judge gave an answer about that could be read",
    "element_vqa/accuracy": "share of answers that agree with the annotation",
    "accuracy_over_all": "share right of all annotated elements; one without an answer counts as wrong",
    "always_present_f1": "what a judge reaches on these sketches that always says present",
}

FLAG_SENTENCES: Mapping[str, str] = {
    "yes_biased_judge": "The judge says present to more than a tenth of what is absent, which raises raw v.",
    "no_biased_judge": "The judge overlooks more than a tenth of what is drawn, which lowers raw v.",
    "uninformative_judge": "The judge cannot tell present from absent. Nothing is corrected, and raw SEA says nothing.",
    "calibration_without_annotation": "There are no annotated sketches to calibrate the judge with: what it overlooks "
    "is unknown, and nothing is corrected.",
    "calibration_without_absent": "The judge was asked about nothing that is absent: its false positives are unknown, "
    "and nothing is corrected.",
    "controls_not_asked": "The judge knows a fixed list of elements, so it was asked no absent-element controls.",
    "controls_unlike_annotation": "The judge errs otherwise on controls than on absent elements of the concept itself: "
    "controls are left out of its specificity.",
    "not_better_than_always_present": "F1 is no better than that of a judge that always says present.",
    "judge_says_present_too_often": "The judge says present more often than the annotation does, beyond chance.",
    "judge_says_present_too_seldom": "The judge says present more seldom than the annotation does, beyond chance.",
}
