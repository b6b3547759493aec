"""Frozen image networks as backbones, and extraction of their features.

`vision` (timm), `classifiers` (torchvision), `clip` (image towers of open_clip), `network` (any other architecture) and
`callable` (a user's own) give backbones, `checkpoint` their weights from published or own files;
`features.extract_features` runs one over a data set.
"""
