"""Measure how human-like a vision model is."""

__version__ = "0.1.0"
