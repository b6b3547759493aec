"""`humanlike extract` as a user starts it: against a real server, reviewed by hand, killed, and out of budget."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from humanlike.elements.lists import ElementLists
from humanlike.entry.conf import compose
from humanlike.entry.extract import extract_job
from humanlike.entry.launch import Job

KEY = "sk-test/0123456789abcdef"
PARTS = {
    "lion": ["mane", "tail", "leg", "heart"],
    "car": ["wheel", "door", "window", "bumper"],
    "owl": ["beak", "wing"],
}


@pytest.fixture(scope="module")
def chat_module():
    path = Path(__file__).parents[1] / "elements" / "chat_server.py"
    spec = importlib.util.spec_from_file_location("chat_server_of_commands", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def server(chat_module):
    """Plays a model that knows the parts above; hearts lie inside."""

    def answer(body):
        schema, text = chat_module.wanted(body), chat_module.text_of(body)
        if "elements" in schema["properties"]:
            concept = next(c for c in PARTS if f": {c}" in text)
            return json.dumps({"elements": PARTS[concept]})
        return json.dumps({n: "inside" if n == "heart" else "visible" for n in schema["required"]})

    with chat_module.ChatServer() as running:
        running.answer = answer
        yield running


@pytest.fixture
def extract(server, tmp_path, monkeypatch):
    """Runs the task in this process as the command does; gives its exit status."""
    monkeypatch.setenv("EXTRACT_KEY", KEY)
    given = {
        "to": tmp_path / "lists",
        "paths.cache": tmp_path / "cache",
        "extractor.client.base_url": server.base_url,
        "extractor.client.credential_env": "EXTRACT_KEY",
        "extractor.client.model": "test-model",
        "extractor.samples": 2,
    }

    def arguments(*settings):
        own = {s.split("=")[0] for s in settings}
        return [*(f"{key}={value}" for key, value in given.items() if key not in own), *settings]

    def run(*settings):
        config = compose("extract", arguments(*settings))
        Path(config.to).mkdir(exist_ok=True)
        return Job(extract_job).run(config, Path(config.to))

    run.folder, run.arguments = given["to"], arguments
    return run


@pytest.fixture
def whole(extract, tmp_path):
    """The command line that a user types, and the environment of its process."""
    environment = {**os.environ, "EXTRACT_KEY": KEY}

    def run(*settings):
        return subprocess.run(
            whole_line(extract, *settings), env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=120,
            check=False,
        )  # fmt: skip

    run.environment = environment
    return run


def whole_line(extract, *settings):
    return [sys.executable, "-m", "humanlike", "extract", *extract.arguments(*settings)]


def test_lists_record_and_votes_are_written_and_nothing_is_asked_twice(extract, server, capsys):
    assert extract("concepts=[lion,car]") == 0
    lists = ElementLists.from_yaml(extract.folder / "elements.yaml")
    assert dict(lists) == {"lion": ("mane", "tail", "leg"), "car": ("wheel", "door", "window", "bumper")}
    assert lists.provenance["car"].startswith("elements.yaml line 6, by test-model, prompt list/1@")
    assert server.count == 2 * 2 + 2
    record = json.loads((extract.folder / "extract.json").read_text())
    assert (record["elements"], record["failed"], record["counts"]["requests"]) == (7, {}, 6)
    assert record["concepts"] == {"lion": "lion", "car": "car"}
    votes = pd.read_parquet(extract.folder / "votes.parquet").set_index(["concept", "element"])
    assert votes.loc[("lion", "heart"), "reason"] == "lies inside"
    said = capsys.readouterr().out
    assert "2 of 2 concepts have a list; 6 requests" in said
    assert f"benchmark.elements={extract.folder / 'elements.yaml'}" in said
    assert extract("concepts=[lion,car]") == 0
    assert server.count == 6
    assert "0 requests" in capsys.readouterr().out


def test_the_review_is_the_last_word_and_further_concepts_join_it(extract, server, capsys):
    assert extract("concepts=[lion,car]") == 0
    review = extract.folder / "review.yaml"
    text = review.read_text()
    text = text.replace("    # - heart  #", "    - heart  #").replace('"not yet"', '"A. Person, 2026"')
    lines = text.splitlines(keepends=True)
    at = lines.index("  car:\n")
    review.write_text("".join(lines[:at]))  # the car goes, with all its lines
    assert extract("concepts=[lion,car]") == 0  # what a person takes out is no loss
    assert review.read_text() == "".join(lines[:at])
    assert "left out by the review: car" in capsys.readouterr().out
    assert dict(ElementLists.from_yaml(extract.folder / "elements.yaml")) == {"lion": ("mane", "tail", "leg", "heart")}
    assert server.count == 6

    assert extract("concepts=[owl,car]") == 0
    assert dict(ElementLists.from_yaml(extract.folder / "elements.yaml")) == {
        "owl": ("beak", "wing"),
        "lion": ("mane", "tail", "leg", "heart"),
    }
    assert "A. Person, 2026" in (extract.folder / "elements.yaml").read_text()
    assert server.count == 9
    assert extract("concepts=[lion,owl,car]") == 0  # still the person's
    assert ElementLists.from_yaml(extract.folder / "elements.yaml")["lion"][-1] == "heart"

    assert extract("concepts=[lion]", "extractor.client.model=another") == 1
    assert "was edited by hand and is of test-model, prompt" in capsys.readouterr().err
    assert server.count == 9  # said before anything was asked


def test_a_review_that_nobody_touched_follows_the_model(extract, server):
    assert extract("concepts=[lion,owl]") == 0
    PARTS_OF_ANOTHER = {"elements": ["paw"]}
    answer = server.answer
    server.answer = lambda body: json.dumps(PARTS_OF_ANOTHER) if body["model"] == "b" and "elements" in str(
        body["response_format"]["json_schema"]["schema"]["required"]
    ) else answer(body)  # fmt: skip
    assert extract("concepts=[lion]", "extractor.client.model=b") == 0
    assert dict(ElementLists.from_yaml(extract.folder / "elements.yaml")) == {"lion": ("paw",)}


def test_a_review_that_cannot_be_continued_is_left_as_it_is(extract, capsys):
    assert extract("concepts=[lion]") == 0
    review = extract.folder / "review.yaml"
    review.write_text("concepts: {lion: [mane]}\n")
    assert extract("concepts=[owl]") == 1
    assert "1 more concepts cannot be put into the reviewed file" in capsys.readouterr().err
    assert review.read_text() == "concepts: {lion: [mane]}\n"


def test_losses_give_status_3_and_what_there_is_is_written(extract, server, capsys):
    server.behave = lambda body: ("say", "I do not know.") if ": car" in body["messages"][-1]["content"] else None
    assert extract("concepts=[lion,car]") == 3
    assert "1 of 2 concepts have no list (car: 0 of 2 samples could be used" in capsys.readouterr().err
    assert list(ElementLists.from_yaml(extract.folder / "elements.yaml")) == ["lion"]
    assert extract("concepts=[lion,car]", "max_failures=1") == 0
    server.behave = None
    assert extract("concepts=[lion,car]") == 3  # asked in vain twice: not asked again unless told
    assert extract("concepts=[lion,car]", "extractor.client.retry_failures=true") == 0
    assert list(ElementLists.from_yaml(extract.folder / "elements.yaml")) == ["car", "lion"]
    assert "# car: 0 of 2" not in (extract.folder / "review.yaml").read_text()


def test_nothing_but_losses_is_written_too(extract, server):
    server.behave = lambda body: ("refuse", None)
    assert extract("concepts=[lion,car]") == 3
    assert not (extract.folder / "elements.yaml").exists()
    assert "# lion: 0 of 2 samples could be used" in (extract.folder / "review.yaml").read_text()
    assert set(json.loads((extract.folder / "extract.json").read_text())["failed"]) == {"lion", "car"}
    server.behave = None
    assert extract("concepts=[lion,car]", "extractor.client.retry_failures=true") == 0
    assert set(ElementLists.from_yaml(extract.folder / "elements.yaml")) == {"lion", "car"}


def test_a_person_may_write_the_list_that_the_model_owed(extract, server):
    server.behave = lambda body: ("refuse", None) if ": car" in body["messages"][-1]["content"] else None
    assert extract("concepts=[lion,car]") == 3
    review = extract.folder / "review.yaml"
    review.write_text(review.read_text() + "  car: [wheel, door]\n")
    assert extract("concepts=[lion,car]") == 0
    assert ElementLists.from_yaml(extract.folder / "elements.yaml")["car"] == ("wheel", "door")


def test_the_budget_ends_a_run_which_goes_on_later(extract, server, capsys):
    assert extract("concepts=[lion,car,owl]", "extractor.client.budget_requests=4") == 1
    assert "budget of 4 requests is used up" in capsys.readouterr().err
    assert server.count == 4
    assert extract("concepts=[lion,car,owl]") == 0
    assert server.count == 9
    assert set(server.answered.values()) <= {1, 2}  # two samples of one text


def test_without_a_key_nothing_is_sent_and_nothing_written(extract, server, monkeypatch, capsys):
    monkeypatch.delenv("EXTRACT_KEY")
    assert extract("concepts=[lion]", "extractor.client.needs_credential=true") == 1
    assert "set the environment variable EXTRACT_KEY; nothing was sent" in capsys.readouterr().err
    assert server.count == 0
    assert [p for p in extract.folder.rglob("*") if p.is_file()] == []


def test_concepts_from_files_data_sets_and_words(extract, server, tmp_path, capsys):
    lines, names = tmp_path / "names.txt", tmp_path / "names.yaml"
    lines.write_text("# what to ask\nlion\n\nowl\n")
    assert extract(f"concepts={lines}", f"to={tmp_path / 'a'}") == 0
    assert set(ElementLists.from_yaml(tmp_path / "a" / "elements.yaml")) == {"lion", "owl"}
    names.write_text("mouse2: owl\nlion:\n- mane\n")
    assert extract(f"concepts={names}", f"to={tmp_path / 'b'}") == 0
    record = json.loads((tmp_path / "b" / "extract.json").read_text())
    assert record["concepts"] == {"mouse2": "owl", "lion": "lion"}
    server.answer = lambda body: json.dumps({"elements": ["part"]})
    settings = ["dataset=doodles", "dataset.concepts=[mouse,cupcake]", "dataset.instances=1", f"to={tmp_path / 'c'}"]
    assert extract(*settings, "extractor.internal_prompt=null") == 0
    record = json.loads((tmp_path / "c" / "extract.json").read_text())
    assert record["concepts"]["mouse"].startswith("mouse (the one with ")
    latin = tmp_path / "latin.txt"
    latin.write_bytes("café\n".encode("latin-1"))
    for settings, says in (
        ([f"concepts={latin}"], "latin.txt is not a text in UTF-8"),
        (["concepts=lion"], "there is no file lion; names are written concepts=[lion,car]"),
        (["concepts=[]"], "concepts needs names of things: there are none"),
        (["concepts=[1]"], "1 is no name"),
        (["concepts=[lion,lion]"], "'lion' stands twice"),
        ([], "name what to ask about"),
        (["concepts=[lion]", "dataset=doodles"], "one of them"),
    ):
        assert extract(*settings) == 1
        assert says in capsys.readouterr().err


def test_a_model_must_be_named(extract, capsys):
    assert extract("concepts=[lion]", "extractor.client.model=???") == 1
    assert "extractor.client.model has no default: give it on the command line" in capsys.readouterr().err


def test_the_key_is_nowhere_in_files_and_output_with_tracebacks_too(whole, server, tmp_path):
    settings = ["concepts=[lion,owl]", "extractor.samples=1", "extractor.client.concurrency=1", "debug=true"]
    server.plan = [("status", 500), ("echo", None), ("say", "no " + KEY)]
    server.behave = lambda body: ("status", 401) if ": owl" in body["messages"][-1]["content"] else None
    said = whole(*settings, "hydra.verbose=true")
    assert said.returncode == 1
    assert "Traceback" in said.stderr
    assert "you sent Bearer ***" in said.stderr
    server.behave = None
    again = whole(*settings, "extractor.client.retry_failures=true")
    assert again.returncode == 0, again.stderr
    assert again.stderr == ""
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert {p.name for p in files} >= {"answers.sqlite", "extract.json", "review.yaml", "extract.log"}
    texts = [said.stdout, said.stderr, again.stdout, *(p.read_bytes().decode("latin-1") for p in files)]
    assert not [text for text in texts if KEY in text]


@pytest.mark.slow
def test_killed_at_60_percent_and_gone_on_with_repeats_no_request(extract, whole, server, tmp_path):
    names = [f"thing {chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(50)]
    (tmp_path / "names.txt").write_text("\n".join(names))
    server.answer = lambda body: json.dumps(
        {"elements": ["part"]} if "elements" in body["response_format"]["json_schema"]["schema"]["properties"]
        else {"part": "visible"}
    )  # fmt: skip
    enough, lock, passed = threading.Event(), threading.Lock(), [0]

    def behave(body):
        with lock:
            passed[0] += 1
            if passed[0] <= 60:  # of 50 lists and 50 second questions
                return None
        enough.set()
        return ("hang", 60)

    server.behave = behave
    settings = [f"concepts={tmp_path / 'names.txt'}", "extractor.samples=1"]
    process = subprocess.Popen(
        whole_line(extract, *settings), env=whole.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert enough.wait(120)
    time.sleep(1.0)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    server.behave = None
    said = whole(*settings, "extractor.client.concurrency=3")
    assert said.returncode == 0, said.stderr
    assert "40 requests" in said.stdout
    assert set(server.answered.values()) == {1}
    assert len(ElementLists.from_yaml(extract.folder / "elements.yaml")) == 50


@pytest.mark.slow
def test_scores_of_sea_carry_the_lists_and_the_key_is_in_no_logger(
    extract, tmp_path, command, small, server, chat_module
):
    assert extract("concepts={banjo: lion, cupcake: owl}") == 0
    server.answer = chat_module.good_answer
    overrides = [s for s in small if not s.startswith(("dataset.concepts", "benchmark.splits"))]
    said = command(
        "evaluate.py", *overrides, "benchmark=sea", "dataset.concepts=[banjo,cupcake]", "judge=endpoint",
        "report=false",
        f"benchmark.elements={extract.folder / 'elements.yaml'}", f"judge.client.base_url={server.base_url}",
        "judge.client.model=m", "judge.client.credential_env=EXTRACT_KEY", "logger=[csv,wandb,tensorboard]",
        f"paths.cache={tmp_path / 'cache'}", f"hydra.run.dir={tmp_path / 'run'}", EXTRACT_KEY=KEY,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert "HTTP Request" not in said.stderr
    record = json.loads((tmp_path / "run" / "score.json").read_text())
    lists = ElementLists.from_yaml(extract.folder / "elements.yaml")
    assert record["details"]["elements"] == {"source": lists.source, "concepts": 2}
    concepts = pd.read_parquet(tmp_path / "run" / "concepts.parquet").set_index("concept")
    assert concepts.loc["banjo", "elements_from"].startswith("elements.yaml line 5, by test-model, prompt list/1@")
    written = [p for p in (tmp_path / "run").rglob("*") if p.is_file()]
    assert {p.suffix for p in written} >= {".wandb", ".csv", ".json"}
    for text in (said.stdout, said.stderr, *(p.read_bytes().decode("latin-1") for p in written)):
        assert KEY not in text
