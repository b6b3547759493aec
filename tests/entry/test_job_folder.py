"""Folder names of sweep jobs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.entry.job_folder import job_folder

TEXT = st.text(min_size=1, max_size=300)


@settings(max_examples=60, deadline=None)
@given(TEXT, TEXT)
def test_names_are_safe_stable_and_distinct(a, b):
    name = job_folder(a)
    assert name == job_folder(a)
    assert 0 < len(name.encode()) < 200
    assert "/" not in name
    assert name not in {".", ".."}
    assert (name == job_folder(b)) == (a == b)


def test_readable_overrides_stay_as_they_are():
    assert job_folder("backbone=resnet50,seed=1") == "backbone=resnet50,seed=1"
    assert job_folder("") == "defaults"
