"""The words of generated sketches: titles, meanings and flags of scores; `reports.wording` takes them from here."""

from __future__ import annotations

from collections.abc import Mapping

_BASE = {
    "sea": "SEA",
    "recognition": "Recognition P",
    "visual_ratio": "Visual ratio v",
    "accuracy": "Accuracy",
    "strokes": "Strokes",
    "diversity": "Diversity",
    "jsd": "Jensen-Shannon distance",
    "frechet": "Fréchet distance",
    "kernel": "Kernel distance",
}

TITLES: Mapping[str, str] = {
    **{f"{name}_critic": f"{title}, critic" for name, title in _BASE.items()},
    **{f"{name}_before": f"{title}, before" for name, title in _BASE.items()},
    **{f"{name}_critic_before": f"{title}, critic, before" for name, title in _BASE.items()},
    "strokes": "Strokes",
    "diversity": "Diversity",
    "frechet": "Fréchet distance",
    "kernel": "Kernel distance",
    "gain_sea": "Gain in SEA, judge",
    "gain_sea_critic": "Gain in SEA, critic",
    "hack_gap": "Hack gap",
    "soft_ratio": "Share of elements",
    "cost_recognition": "Costs in P",
    "saved_ratio": "Saves in v",
}

MEANINGS: Mapping[str, str] = {
    "generation/sea": "under a judge that never trained the generator; sketches are scored, then averaged",
    "generation/recognition": "probability that the judge gives to the sketch's concept",
    "generation/accuracy": "share of sketches that the judge takes for their concept",
    "generation/jsd": "between the judge's mean responses to these sketches and to the reference's; 0 is the same",
    "strokes": "pen strokes a sketch",
    "diversity": "mean distance between two sketches of one concept in the judge's features",
    "frechet": "between normal distributions fitted to the judge's features; biased upwards where sketches are few",
    "kernel": "squared maximum mean discrepancy of the judge's features",
    "gain_sea": "after less before, under the judge",
    "gain_sea_critic": "after less before, under the critic that trained",
    "hack_gap": "the critic's gain less the judge's; above 0, something was gained by pleasing the critic alone",
}

FLAG_SENTENCES: Mapping[str, str] = {
    "hack_gap_open": "The critic's gain in SEA exceeds the judge's beyond chance: part of it pleases the critic alone.",
    "blank_sketches": "{count} sketch(es) are blank sheets.",
    "single_sketch_concepts": "{count} concept(s) have one sketch only, which tells nothing about diversity.",
}
