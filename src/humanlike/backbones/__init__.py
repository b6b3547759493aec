"""Frozen image networks as backbones, and extraction of their features.

`vision` (timm), `callable` (a user's own) give backbones; `features.extract_features` runs one over a data set.
"""
