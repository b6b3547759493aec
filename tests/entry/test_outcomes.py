"""What a job of a sweep leaves behind, and when it counts as finished."""

from __future__ import annotations

import json
import os
import socket

import pytest

from humanlike.entry.outcomes import (
    OUTCOME,
    is_finished,
    objective_of,
    read_outcome,
    record_outcome,
    record_start,
)


@pytest.fixture
def ended(tmp_path):
    """A job that ended well under the settings "abc" and left a file, a folder and a log."""
    record_start(tmp_path, "seed=0", "abc")
    (tmp_path / "score.json").write_text("{}")
    (tmp_path / "figures").mkdir()
    (tmp_path / "log.jsonl").write_text("1\n")
    record_outcome(tmp_path, 0, "seed=0", identity="abc", value=0.5)
    return tmp_path


def test_a_job_that_ended_well_is_finished_under_its_settings_alone(ended):
    assert is_finished(ended, "abc")
    assert not is_finished(ended, "abd")
    assert not is_finished(ended, "")
    assert not is_finished(ended / "nowhere", "abc")


def test_a_job_whose_files_are_gone_or_cut_is_not_finished(ended):
    (ended / "log.jsonl").write_text("1\n2\n")
    assert is_finished(ended, "abc"), "a log may grow"
    (ended / "score.json").write_text("{")
    assert not is_finished(ended, "abc")
    (ended / "score.json").write_text("{}")
    assert is_finished(ended, "abc")
    (ended / "figures").rmdir()
    assert not is_finished(ended, "abc")


@pytest.mark.parametrize("status", [1, 3])
def test_failed_jobs_and_those_with_losses_are_run_again(status, ended):
    record_outcome(ended, status, "seed=0", identity="abc")
    assert not is_finished(ended, "abc")


def test_a_job_at_work_has_an_outcome_without_a_status(tmp_path):
    record_start(tmp_path, "seed=0", "abc")
    outcome = read_outcome(tmp_path)
    assert outcome["status"] is None
    assert (outcome["host"], outcome["process"]) == (socket.gethostname(), os.getpid())
    assert not is_finished(tmp_path, "abc")


def test_a_skipped_job_keeps_where_it_ran_and_what_it_was_worth(ended, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 1)
    record_outcome(ended, 0, "seed=0", identity="abc", value=0.5, skipped=True)
    outcome = read_outcome(ended)
    assert (outcome["skipped"], outcome["value"]) == (True, 0.5)
    assert outcome["process"] != 1
    assert is_finished(ended, "abc")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"other": 1}'])
def test_a_file_that_is_no_outcome_is_none(text, tmp_path):
    (tmp_path / OUTCOME).write_text(text)
    assert read_outcome(tmp_path) is None


def test_the_objective_is_a_score_or_a_path_of_keys(tmp_path):
    (tmp_path / "score.json").write_text(json.dumps({"scores": {"accuracy": {"value": 0.25}, "snp": {"value": None}}}))
    (tmp_path / "metrics.json").write_text(json.dumps({"after": {"judge": {"sea": 0.125, "ok": True}}, "loss": 2}))
    assert objective_of(tmp_path, "accuracy") == 0.25
    assert objective_of(tmp_path, "after.judge.sea") == 0.125
    assert objective_of(tmp_path, "loss") == 2.0
    assert objective_of(tmp_path, None) is None
    with pytest.raises(ValueError, match=r"objective=snp is no number .* there are accuracy, after\.judge\.sea, loss"):
        objective_of(tmp_path, "snp")
