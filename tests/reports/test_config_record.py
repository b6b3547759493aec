from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from humanlike.reports.config_record import MASK, masked_config, read_config, write_config

SECRET = "s3cr3t-value"


@pytest.mark.parametrize(
    "key", ["token", "HF_TOKEN", "api_key", "apiKey", "client_secret", "Password", "wandb_api_key"]
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v, v], lambda v: {"deep": {"er": v}}])
def test_secrets_are_masked_wherever_they_stand(key, wrap, tmp_path):
    config = OmegaConf.create({"logger": [{"inner": {key: wrap(SECRET)}}], "seed": 3})
    write_config(tmp_path / "config.yaml", config)
    text = (tmp_path / "config.yaml").read_text()
    assert SECRET not in text
    assert MASK in text
    assert yaml.safe_load(text)["seed"] == 3


def test_address_credentials_are_masked_and_numbers_stay():
    config = masked_config({"proxy": "http://me:pw@host:80/x", "max_tokens": 5, "token": None, "paths": ("a", "b")})
    assert config == {"proxy": "http://***@host:80/x", "max_tokens": 5, "token": None, "paths": ["a", "b"]}


def test_interpolations_are_resolved():
    config = OmegaConf.create({"paths": {"root": "r"}, "data": "${paths.root}/d", "list": ["${data}"]})
    assert masked_config(config) == {"paths": {"root": "r"}, "data": "r/d", "list": ["r/d"]}


@settings(deadline=None, max_examples=30)
@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=3),
        st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab: #'\"\n{", max_size=6),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xz", min_size=1), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_yaml_gives_back_what_was_written(tmp_path_factory, config):
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    write_config(path, config)
    assert read_config(path) == config


def test_not_a_mapping():
    with pytest.raises(TypeError, match="config must be a mapping, got list"):
        masked_config([1])


@pytest.mark.parametrize("text", ["a: [1", "- a", "caf\xe9: 1"])
def test_a_damaged_configuration_is_named(text, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"config\.yaml .*; run its command again"):
        read_config(path)
