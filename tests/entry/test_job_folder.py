"""Folder names of sweep jobs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.entry.job_folder import fitted, job_folder

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


def test_a_long_name_shows_every_setting_that_tells_jobs_apart():
    long = ["backbone=random_tiny", "benchmark.replicates=20", "dataset.concepts=5", "dataset.instances=5"]
    long += ["logger=none", "paths.output_dir=/tmp/a", "report=False"]
    names = [job_folder(",".join([*long, f"seed={seed}"])) for seed in (0, 1)]
    for seed, name in enumerate(names):
        shown = f"backbone=random_tiny,benchmark.replicates=20,dataset.concepts=5,dataset.instances=5,seed={seed}-"
        assert name.startswith(shown)
        assert len(name) == len(shown) + 10
    longer = job_folder(",".join([*long, "extraction.num_workers=0,seed=0,benchmark.splits=5"]))
    assert "replicates=20,concepts=5,instances=5,num_workers=0,seed=0,splits=5-" in longer


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=9), st.integers(9, 90))
def test_settings_on_one_line_keep_its_length(pairs, longest):
    line = fitted([f"{key}={value}" for key, value in pairs], longest, " ")
    assert len(line) <= longest
