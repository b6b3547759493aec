"""A real HTTP server that speaks a chat endpoint's protocol, well or badly, as told.

python tests/elements/chat_server.py --latency 0.02      # prints its address and serves until its input is closed
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def wanted(body: dict) -> dict:
    """The schema that a request asks for."""
    return body.get("response_format", {}).get("json_schema", {}).get("schema", {})


def text_of(body: dict) -> str:
    """The text of the user's message."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def good_answer(body: dict) -> str:
    """Every property of the schema, with one of its values that the names decide."""
    verdicts = {
        name: rule["enum"][hashlib.sha256(name.encode()).digest()[0] % len(rule["enum"])]
        for name, rule in wanted(body).get("properties", {}).items()
    }
    return json.dumps(verdicts)


def completion(content: str | None, finish: str = "stop", refusal: str | None = None, **choice) -> str:
    """The body of a chat completion."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": finish, **choice}],
            "usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100},
        }
    )


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ChatServer

    def log_message(self, *args) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        behaviour, argument = self.server.received(self.path, dict(self.headers), body)
        try:
            getattr(self, behaviour)(body, argument)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            self.server.left()

    def reply(self, status: int, text: str, kind: str = "application/json", **headers: str) -> None:
        data = text.encode()
        lines = {"Content-Type": kind, "Content-Length": str(len(data))}
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n"
        self.wfile.write(head.encode() + data)

    def ok(self, body: dict, argument) -> None:
        time.sleep(self.server.latency)
        self.server.answered[text_of(body)] += 1
        self.reply(200, completion(self.server.answer(body)))

    def say(self, body: dict, content) -> None:
        self.reply(200, completion(content))

    def raw(self, body: dict, text) -> None:
        self.reply(200, text)

    def cut(self, body: dict, argument) -> None:
        self.reply(200, completion(self.server.answer(body)[:-4], "length"))

    def refuse(self, body: dict, argument) -> None:
        self.reply(200, completion(None, refusal="I'm sorry, I can't help with that."))

    def filtered(self, body: dict, argument) -> None:
        self.reply(200, completion("", "content_filter"))

    def rate_limit(self, body: dict, seconds) -> None:
        headers = {} if seconds is None else {"Retry_After": str(seconds)}
        self.reply(429, json.dumps({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}), **headers)

    def quota(self, body: dict, argument) -> None:
        self.reply(429, json.dumps({"error": {"message": "no credit", "code": "insufficient_quota"}}))

    def status(self, body: dict, code) -> None:
        said = f"you sent {self.headers.get('Authorization')} and that is wrong"
        self.reply(code, json.dumps({"error": {"message": said, "type": "invalid_request_error"}}))

    def echo(self, body: dict, argument) -> None:
        """The key in the reply, escaped so that it does not stand there as it is."""
        key = "".join(f"\\u{ord(c):04x}" for c in str(self.headers.get("Authorization")))
        self.reply(200, completion("KEY").replace("KEY", key))

    def unavailable(self, body: dict, seconds) -> None:
        self.reply(503, json.dumps({"error": {"message": "loading the model"}}), Retry_After=str(seconds))

    def of_kind(self, body: dict, kind) -> None:
        """A good answer that says it is something else, or nothing."""
        data = completion(self.server.answer(body)).encode()
        said = f"Content-Type: {kind}\r\n" if kind else ""
        self.wfile.write(f"HTTP/1.1 200 OK\r\n{said}Content-Length: {len(data)}\r\n\r\n".encode() + data)

    def html(self, body: dict, argument) -> None:
        self.reply(200, "<html>Welcome to the café</html>", "text/html")

    def hang(self, body: dict, seconds) -> None:
        self.server.released.wait(seconds)
        self.close_connection = True

    def drip(self, body: dict, argument) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n")
        for _ in range(200):
            self.wfile.write(b" ")
            if self.server.released.wait(0.05):
                break
        self.close_connection = True

    def broken(self, body: dict, argument) -> None:
        self.wfile.write(
            b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n{"choices": ['
        )
        self.close_connection = True

    def huge(self, body: dict, argument) -> None:
        self.reply(200, "[" + "1," * (5 << 20) + "1]")

    def redirect(self, body: dict, address) -> None:
        self.reply(307, "", Location=address)


class ChatServer(ThreadingHTTPServer):
    """The server; in a `with` block it serves in a thread.

    Attributes:
        plan: Behaviours of the next requests, (name, argument); "ok" when they are used up.
        behave: Behaviour by body, where the plan says nothing; None: "ok".
        answer: Content of a good answer.
        latency: Seconds that a good answer takes.
        requests: (path, headers, body) of what was received, if `recording`.
        count: Requests received; `most` at a time.
        answered: Text of the question → good answers that were sent.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.plan: list[tuple[str, object]] = []
        self.behave: Callable[[dict], tuple[str, object] | None] | None = None
        self.answer = good_answer
        self.latency, self.recording = 0.0, True
        self.requests: list[tuple[str, dict, dict]] = []
        self.answered: Counter[str] = Counter()
        self.count = self.now = self.most = 0
        self.times: list[float] = []
        self.released = threading.Event()
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def received(self, path: str, headers: dict, body: dict) -> tuple[str, object]:
        with self._lock:
            self.count += 1
            self.now += 1
            self.most = max(self.most, self.now)
            if self.recording:
                self.requests.append((path, headers, body))
                self.times.append(time.monotonic())
            if self.plan:
                return self.plan.pop(0)
        return (self.behave(body) if self.behave else None) or ("ok", None)

    def left(self) -> None:
        with self._lock:
            self.now -= 1

    def handle_error(self, request, address) -> None:
        """A client that was killed is no news."""

    def __enter__(self) -> ChatServer:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *args) -> None:
        self.released.set()
        self.shutdown()
        self.server_close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.0)
    with ChatServer() as server:
        server.latency, server.recording = parser.parse_args().latency, False
        print(server.base_url, flush=True)
        sys.stdin.read()
        print(json.dumps({"count": server.count, "most": server.most}), flush=True)


if __name__ == "__main__":
    main()
