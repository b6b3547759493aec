"""Every file in conf/ composes, names what exists and is allowed, and gives only keywords that are taken."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from humanlike.entry.conf import compose, conf_dir
from humanlike.entry.overrides import group_options, groups
from humanlike.entry.targets import check_keywords, check_target, targets

# What belongs to another command than evaluate.
TRAIN_ONLY = {"task", "generator"}
STUDY_ONLY = {("experiment", "seva_paper")}
TRAINED = {("experiment", "tune_readout"), ("experiment", "tune_generator")}
FILES = [(group, name) for group in groups() for name in group_options(conf_dir() / group)]


def composed(group, name):
    command = (
        "study"
        if (group, name) in STUDY_ONLY
        else "train"
        if group in TRAIN_ONLY or (group, name) in TRAINED
        else "evaluate"
    )
    return compose(command, [f"{group}={name}"])


@pytest.mark.parametrize(("group", "name"), FILES, ids=lambda v: str(v))
def test_the_file_names_what_exists(group, name):
    config = composed(group, name)
    plain = OmegaConf.to_container(config, resolve=False)
    found = list(targets(plain, ""))
    assert found
    for path, node in found:
        check_target(node["_target_"], path)
        check_keywords(node, path)


@pytest.mark.parametrize("command", ["evaluate", "train", "study"])
def test_the_defaults_resolve_completely(command):
    OmegaConf.to_container(compose(command), resolve=True, throw_on_missing=True)


def test_an_extraction_needs_the_name_of_a_model_alone():
    config = compose("extract", ["extractor.client.model=m/1"])
    plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    assert plain["to"].startswith("outputs/extract/m_1-")
    for path, node in targets(plain, ""):
        check_target(node["_target_"], path)
        check_keywords(node, path)


def test_every_group_of_the_promise_is_there():
    promised = {
        "backbone",
        "dataset",
        "benchmark",
        "metric",
        "readout",
        "trainer",
        "logger",
        "paths",
        "experiment",
        "debug",
    }
    assert promised <= set(groups())
