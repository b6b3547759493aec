"""Downloads from a local server that can break, go on, lie and count."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

import pytest
import torch

from humanlike.backbones.downloads import download
from humanlike.data import fetch
from humanlike.data.fetch import check_digest, is_offline

CONTENT = bytes(range(256)) * 300
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Server:
    """What the server does: break after so many bytes of an answer (once each), ignore ranges, answer `status`."""

    url: str = ""
    content: bytes = CONTENT
    breaks_after: list[int] = field(default_factory=list)
    ranges: bool = True
    status: int = 200
    asked: list[str | None] = field(default_factory=list)


@pytest.fixture
def server(serve) -> Server:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            state.asked.append(self.headers.get("Range"))
            if state.status != 200:
                self.send_error(state.status)
                return
            start = int(self.headers["Range"][6:-1]) if state.ranges and "Range" in self.headers else 0
            if start >= len(state.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(state.content)}")
                self.end_headers()
                return
            rest = state.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest[: state.breaks_after.pop(0)] if state.breaks_after else rest)

    state.url = f"{serve(Handler)}/some/w.pt"
    return state


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr(fetch, "WAIT_S", 0.0)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return tmp_path / "checkpoints"


def test_a_file_is_fetched_once_and_kept(server, folder):
    path = download(server.url, DIGEST)
    assert path == folder / "w.pt"
    assert path.read_bytes() == CONTENT
    assert download(server.url, DIGEST[:8], offline=True) == path
    assert server.asked == [None]
    assert sorted(p.name for p in folder.iterdir()) in (["w.pt"], ["w.pt", "w.pt.lock"])


def test_a_broken_connection_is_continued(server):
    server.breaks_after = [1000, 50_000]
    assert download(server.url, DIGEST).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", "bytes=51000-"]


def test_what_a_killed_process_left_is_continued_where_a_digest_can_tell(server, folder):
    folder.mkdir()
    (folder / "w.pt.part").write_bytes(CONTENT[:7000])
    assert download(server.url, DIGEST).read_bytes() == CONTENT
    (folder / "x.pt.part").write_bytes(CONTENT[:7000])
    assert download(server.url, file_name="x.pt").read_bytes() == CONTENT
    assert server.asked == ["bytes=7000-", None]


@pytest.mark.parametrize("old", [b"of another version", CONTENT + b"more", CONTENT])
def test_an_old_half_that_does_not_fit_is_thrown_away(server, folder, old):
    folder.mkdir()
    (folder / "w.pt.part").write_bytes(old)
    assert download(server.url, DIGEST).read_bytes() == CONTENT


def test_a_server_without_ranges_starts_anew(server):
    server.ranges, server.breaks_after = False, [1000]
    assert download(server.url, DIGEST).read_bytes() == CONTENT


def test_another_content_is_refused_and_not_kept(server, folder):
    server.content = b"an error page"
    with pytest.raises(ValueError, match=r"did not give the published file: .*has SHA-256"):
        download(server.url, DIGEST)
    assert not list(folder.glob("w.pt*part")) + list(folder.glob("w.pt"))


def test_a_connection_that_breaks_for_ever_ends(server, folder):
    server.breaks_after = [0] * 50
    with pytest.raises(FileNotFoundError, match=r"download failed: .*by hand and save it as .*w.pt"):
        download(server.url, DIGEST)
    assert len(server.asked) == fetch.ATTEMPTS
    assert not (folder / "w.pt").exists()


@pytest.mark.parametrize(("status", "times"), [(404, 1), (403, 1), (503, fetch.ATTEMPTS)])
def test_a_refusal_is_final_and_a_busy_server_is_asked_again(server, status, times):
    server.status = status
    with pytest.raises(FileNotFoundError, match=str(status)):
        download(server.url)
    assert len(server.asked) == times


def test_several_at_once_download_once(server):
    found = []
    threads = [threading.Thread(target=lambda: found.append(download(server.url, DIGEST))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(server.asked) == 1


def test_offline_says_what_to_do(folder, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert is_offline()
    with pytest.raises(
        FileNotFoundError, match=r"download https://example.org/w.pt \(SHA-256 0{8}…\) by hand"
    ) as error:
        download("https://example.org/w.pt", "0" * 8)
    assert str(folder / "w.pt") in str(error.value)


def test_bad_addresses_and_digests(tmp_path):
    with pytest.raises(ValueError, match="must begin with https"):
        download("file:///etc/passwd")
    (tmp_path / "w").write_bytes(CONTENT)
    with pytest.raises(ValueError, match="8 to 64 hex digits"):
        check_digest(tmp_path / "w", "abc")
    with pytest.raises(ValueError, match="damaged or another version"):
        check_digest(tmp_path / "w", "0" * 64)
    check_digest(tmp_path / "w", DIGEST.upper())
