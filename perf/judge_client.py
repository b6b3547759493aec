"""Requests a second, and memory, of the client of chat endpoints against a real HTTP server in a process of its own.

    python perf/judge_client.py                       # 10,000 requests, 32 at a time, pictures of 20 kB
    python perf/judge_client.py --requests 2000 --latency 0.05

Every request carries a picture, its answer is checked and written to an SQLite file. Afterwards the same questions are
asked again, which must send nothing. Peak memory is that of the client's process, after a tenth and at the end.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from humanlike.elements.client import ChatClient
from humanlike.elements.client_questions import Picture, Question
from humanlike.elements.endpoint_judge_answers import presence_answer, presence_schema

SERVER = Path(__file__).resolve().parents[1] / "tests" / "elements" / "chat_server.py"
ELEMENTS = ("head", "body", "tail", "leg", "eye", "ear", "mane", "nose")


def questions(count: int, size: int) -> Iterator[Question]:
    """Questions about pictures that are made when they are sent."""
    schema = presence_schema(ELEMENTS)
    for i in range(count):
        seed = i.to_bytes(4, "big")
        yield Question(
            topic="presence",
            user="Which parts are drawn?",
            check=partial(presence_answer, elements=ELEMENTS),
            pictures=(Picture(str(i), lambda seed=seed: seed * (size // 4)),),
            schema=schema,
        )


def peak_megabytes() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(client: ChatClient, count: int, size: int) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds, and peak memory after a tenth."""
    wall, cpu, early = time.perf_counter(), time.process_time(), 0.0
    for done, outcome in enumerate(client.ask_all(questions(count, size)), start=1):
        if outcome.answer is None:
            raise SystemExit(f"question {outcome.index} has no answer: {outcome.reason}")
        if done == count // 10:
            early = peak_megabytes()
    return time.perf_counter() - wall, time.process_time() - cpu, early


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that the server takes for an answer")
    parser.add_argument("--picture", type=int, default=20_000, help="bytes of a picture")
    given = parser.parse_args()
    command = [sys.executable, str(SERVER), "--latency", str(given.latency)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"credential_env": None, "cache": Path(folder) / "answers.sqlite", "concurrency": given.concurrency}
        with ChatClient("perf", address, **settings) as client:
            wall, cpu, early = measured(client, given.requests, given.picture)
            end = peak_megabytes()
            again, _, _ = measured(client, given.requests, given.picture)
            counts = client.counts
    server.stdin.close()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; server: {server.stdout.read().strip()}")
    print(f"{given.requests} requests, {given.concurrency} at a time: {given.requests / wall:.0f}/s in {wall:.1f} s")
    print(f"CPU of the client {1000 * cpu / given.requests:.2f} ms a request; memory {early:.0f} → {end:.0f} MB")
    print(f"again from the cache: {given.requests / again:.0f}/s; {counts}")
    server.wait()


if __name__ == "__main__":
    main()
