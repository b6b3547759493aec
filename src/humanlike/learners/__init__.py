"""Learners: the decision stage that learns from rewards on frozen features, simulated by the thousand.

Importing this costs nothing beyond NumPy; compiled code and torch are loaded by the first simulation that needs them.
"""

from humanlike.learners.calibration import Calibration, calibrate, calibrate_gram, fit_calibration
from humanlike.learners.direct import DirectLearner, simulate_direct, simulate_learner
from humanlike.learners.sessions import SessionDraws, draw_high_variation, draw_one_shot
from humanlike.learners.simulation import simulate_gram, simulate_sessions
from humanlike.learners.update_rules import (
    PAPER_RULES,
    RULES,
    ExemplarRule,
    LinearRule,
    PrototypeRule,
    ReinforceRule,
    UpdateRule,
    resolve_rule,
)

__all__ = [
    "PAPER_RULES",
    "RULES",
    "Calibration",
    "DirectLearner",
    "ExemplarRule",
    "LinearRule",
    "PrototypeRule",
    "ReinforceRule",
    "SessionDraws",
    "UpdateRule",
    "calibrate",
    "calibrate_gram",
    "draw_high_variation",
    "draw_one_shot",
    "fit_calibration",
    "resolve_rule",
    "simulate_direct",
    "simulate_gram",
    "simulate_learner",
    "simulate_sessions",
]
