"""Readouts: classifiers on frozen features. `linear_probe` (Lightning) is imported from its own module."""

from humanlike.readouts.folds import stratified_folds, stratified_group_folds
from humanlike.readouts.logistic import ConvergenceWarning, LogisticReadout

__all__ = ["ConvergenceWarning", "LogisticReadout", "stratified_folds", "stratified_group_folds"]
