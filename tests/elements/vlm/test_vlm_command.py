"""From the command line: prefetch, a run of SEA, and a run that is killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOODLES = ["dataset.concepts=[lion,taxi,snail]", "dataset.instances=5", "dataset.judgments=0"]
SCRIPT = """
import sys
from humanlike.data.doodles import doodles
from humanlike.elements.annotation import annotated_elements
from humanlike.elements.prompts import Prompt
from humanlike.elements.vlm import TransformersJudge
from humanlike.elements.vlm_chat import ChatReader, LoadedChat

asked, read = [], LoadedChat.log_masses
def counted(self, image, questions):
    asked.append(len(questions))
    return read(self, image, questions)
LoadedChat.log_masses = counted
data = doodles(["lion", "taxi"], instances=10, judgments=0)
judge = TransformersJudge(sys.argv[1], ChatReader(), Prompt("p", "is the {element} drawn ?"), cache=sys.argv[2],
                          device="cpu", threads=1, min_mass=0.0, progress=False)
presence = judge.judge(data, annotated_elements(data))
print(len(presence.table), sum(asked))
"""


def environment():
    return {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def answers(cache):
    if not cache.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{cache}?mode=ro", uri=True, timeout=5) as db:
            return db.execute("SELECT count(*) FROM answers").fetchone()[0]
    except sqlite3.OperationalError:  # the table is just being made
        return 0


def test_prefetch_makes_the_judge_ready(saved, capsys):
    from humanlike.entry.prefetch import main

    main([*DOODLES, "benchmark=sea", "judge=vlm", f"judge.model={saved('llava')}"])
    assert "ready: tiny-llava (files:" in capsys.readouterr().out


def test_prefetch_fetches_the_model_that_the_configuration_names(monkeypatch, capsys):
    from humanlike.elements import vlm
    from humanlike.elements.vlm_files import ModelFiles
    from humanlike.entry.prefetch import main

    asked = []

    def fetched(model, revision, offline, remote_code):
        asked.append((model, revision, bool(offline), remote_code))
        return ModelFiles(Path("cache"), model, "c" * 40)

    monkeypatch.setattr(vlm, "model_files", fetched)
    main([*DOODLES, "benchmark=sea", "judge=qwen2_5_vl", "judge.revision=v2"])
    assert asked == [("Qwen/Qwen2.5-VL-7B-Instruct", "v2", False, False)]
    assert f"ready: Qwen/Qwen2.5-VL-7B-Instruct ({'c' * 40}) in cache" in capsys.readouterr().out


def test_prefetch_asks_no_endpoint_and_needs_no_key(monkeypatch, capsys):
    from humanlike.entry.prefetch import main

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    main([*DOODLES, "benchmark=sea", "judge=endpoint", "judge.client.model=m"])
    assert capsys.readouterr().out.count("ready:") == 1


# Judge of the configuration → tiny model of the class of its checkpoint.
JUDGES = {
    "llava": "llava",
    "qwen2_5_vl": "qwen2_5_vl",
    "internvl": "internvl",
    "smolvlm": "idefics3",
    "molmo": "molmo2",
    "blip": "blip",
    "blip2": "blip2",
    "paligemma2": "paligemma2",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_of_the_configuration_reads_its_class(name, saved, sketches, tmp_path):
    from humanlike.entry.conf import compose
    from humanlike.entry.targets import build

    folder = f"judge.model={saved(JUDGES[name])}"
    config = compose("evaluate", ["benchmark=sea", f"judge={name}", folder, "judge.min_mass=0", "judge.device=cpu",
                                  f"paths.cache={tmp_path}"])  # fmt: skip
    judge = build(config.judge)
    presence = judge.judge(sketches(count=2), {"lion": ("tail", "mane"), "taxi": ("wheel", "left door")})
    assert presence.coverage == 1.0
    assert presence.table["probability"].nunique() > 1
    assert ("judge_reduced_precision:bfloat16" in presence.facts["flags"]) == (config.judge.dtype == "bfloat16")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_of_sea_is_judged_by_a_saved_model(saved, tmp_path):
    settings = [
        *DOODLES,
        "benchmark=sea",
        "benchmark.replicates=20",
        "benchmark.sensitivity_draws=0",
        "judge=vlm",
        f"judge.model={saved('llava')}",
        "judge.min_mass=0",
        "judge.device=cpu",
        "offline=true",
        f"paths.cache={tmp_path / 'cache'}",
        f"paths.output_dir={tmp_path / 'out'}",
    ]
    command = [sys.executable, "evaluate.py", *settings]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (file,) = (tmp_path / "out").rglob("score.json")
    score = json.loads(file.read_text())
    assert "tiny-llava by the chat reader at files:" in score["details"]["judge"]["source"]
    assert score["counts"]["judgments"] > 100
    assert score["counts"]["judgments_missing"] == 0
    assert answers(tmp_path / "cache" / "answers.sqlite") == score["counts"]["judgments"]
    assert "presence_f1" in score["scores"]
    astray = [flag for flag in score["flags"] if flag.startswith("judge_mass_outside:")]
    assert astray == [
        f"judge_mass_outside:{score['counts']['judgments']}"
    ]  # a vocabulary of 83 words, 10 of them these
    assert score["details"]["judge"]["revision"].startswith("files:")
    assert 0.5 < score["details"]["judge"]["mass_outside_mean"] < 1
    assert "half of the probability on other words than yes and no" in (file.parent / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_that_is_killed_goes_on_where_it_was(saved, tmp_path):
    cache = tmp_path / "a.sqlite"
    command = [sys.executable, "-c", SCRIPT, str(saved("llava")), str(cache)]
    running = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while answers(cache) < 100 and running.poll() is None:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    out, _ = running.communicate(timeout=60)
    assert out == b""  # it was not through
    kept = answers(cache)
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=400, check=True)
    total, asked = map(int, done.stdout.split())
    assert 100 <= kept < total
    assert asked == total - kept


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings(
    "ignore:.*srun.*command is available.*", "ignore:.*LeafSpec.*is deprecated.*:FutureWarning",
    "ignore:__array__ implementation:DeprecationWarning",
)  # fmt: skip
def test_open_models_name_and_judge_from_end_to_end(saved, chat_server, tmp_path, chat_module):
    """`experiment=opensea`: a language model behind a server names, Qwen2.5-VL's class in this process judges."""
    from humanlike.entry.conf import compose
    from humanlike.entry.evaluate import score_from_config
    from humanlike.entry.targets import build

    named = {"lion": ["mane", "tail", "paw"], "taxi": ["wheel", "door"], "snail": ["tail", "ear"]}

    def answer(body):
        properties = chat_module.wanted(body)["properties"]
        if set(properties) == {"elements"}:
            text = chat_module.text_of(body)
            return json.dumps({"elements": next(parts for name, parts in named.items() if name in text)})
        return json.dumps(dict.fromkeys(properties, "visible"))

    chat_server.answer = answer
    config = compose(
        "evaluate",
        ["experiment=opensea", "dataset=doodles", *DOODLES, "backbone=random_tiny",
         "readout=logistic", "readout.n_splits=2", f"judge.model={saved('qwen2_5_vl')}", "judge.min_mass=0",
         "judge.device=cpu", "judge.dtype=float32", f"benchmark.elements.client.base_url={chat_server.base_url}",
         "benchmark.replicates=20", "benchmark.sensitivity_draws=0", "extraction.num_workers=0", "offline=true",
         "benchmark.calibration={annotated: null, controls: 1}", f"paths.cache={tmp_path / 'cache'}"],
    )  # fmt: skip
    benchmark = build(config.benchmark)
    score = score_from_config(config, benchmark=benchmark)[0]
    benchmark.elements.client.close()
    concepts = score.result.tables["concepts"].set_index("concept")["elements"]
    assert {c: e.split(", ") for c, e in concepts.items()} == named
    assert {body["model"] for _, _, body in chat_server.requests} == {"openai/gpt-oss-20b"}
    assert "tiny-qwen2_5_vl by the chat reader" in score.result.details["judge"]["source"]
    counts, items = score.result.counts, score.result.items
    assert counts["judgments"] == counts["items_total"] // 3 * 7
    assert counts["judgments_missing"] == 0
    assert score.result.details["calibration"]["controls_answered"] == counts["items_total"]
    assert "calibration_without_annotation" in score.result.flags
    judged = score.result.tables["judgments"].groupby("sketch_id")["decision"].mean()
    assert items.set_index("sketch_id")["visual_ratio"].to_dict() == pytest.approx(judged.astype(float).to_dict())
    assert items["sea"].notna().all()
