"""Published files from a local server that breaks, lies, lacks files and changes them."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

import pytest

from humanlike.data import fetch
from humanlike.data.fetch import RemoteFile, fetch_file, fetch_missing
from humanlike.data.seva import seva_published
from humanlike.data.seva_files import FILES

CONTENT = b"a,b\n" + bytes(range(97, 123)) * 3000
TABLE = RemoteFile("t.csv", "a table", by_hand="https://example.org/folder")


@dataclass
class Server:
    """Path → content; `breaks_after` cuts answers short (once each); `tag` names the version of all content."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=lambda: {"/one/t.csv": CONTENT})
    breaks_after: list[int] = field(default_factory=list)
    tag: str | None = '"v1"'
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@pytest.fixture
def server(monkeypatch, serve) -> Server:
    monkeypatch.setattr(fetch, "WAIT_S", 0.0)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            state.asked.append((self.path, self.headers.get("Range")))
            content = state.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start = int(self.headers["Range"][6:-1]) if "Range" in self.headers else 0
            if "If-Range" in self.headers and self.headers["If-Range"] != state.tag:
                start = 0
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            if state.tag is not None:
                self.send_header("ETag", state.tag)
            self.end_headers()
            rest = content[start:]
            self.wfile.write(rest[: state.breaks_after.pop(0)] if state.breaks_after else rest)

    state.url = serve(Handler)
    return state


def test_fetched_once_and_written_down(server, tmp_path):
    path = fetch_file(TABLE, tmp_path / "new", [f"{server.url}/one/"])
    assert path.read_bytes() == CONTENT
    assert fetch_file(TABLE, tmp_path / "new", [f"{server.url}/one"], offline=True) == path
    assert server.asked == [("/one/t.csv", None)]
    record = json.loads((tmp_path / "new" / "fetched.json").read_text())
    assert record["schema"] == "humanlike.fetched/1"
    expected = {"bytes": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    assert record["files"] == {"t.csv": {**expected, "url": f"{server.url}/one/t.csv"}}
    assert {p.name for p in path.parent.iterdir()} - {".fetch.lock"} == {"t.csv", "fetched.json"}


def test_a_changed_file_is_refused_afterwards(server, tmp_path):
    mirrors = [f"{server.url}/one"]
    path = fetch_file(TABLE, tmp_path, mirrors)
    path.write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(ValueError, match=r"is not the file that was fetched from .*remove it to fetch it again"):
        fetch_file(TABLE, tmp_path, mirrors)
    path.unlink()
    server.files = {"/one/t.csv": CONTENT[::-1], "/two/t.csv": CONTENT}
    assert fetch_file(TABLE, tmp_path, [*mirrors, f"{server.url}/two"]).read_bytes() == CONTENT
    assert [p for p, _ in server.asked[1:]] == ["/one/t.csv", "/two/t.csv"], "the first has other content than at first"


def test_a_cut_is_continued_by_the_same_process_and_by_the_next(server, tmp_path, monkeypatch):
    server.breaks_after = [1000, 20_000]
    assert fetch_file(TABLE, tmp_path / "a", [f"{server.url}/one"]).read_bytes() == CONTENT
    assert [r for _, r in server.asked] == [None, "bytes=1000-", "bytes=21000-"]
    server.asked.clear()
    server.breaks_after = [1000, 0, 0, 0, 0]
    with pytest.raises(FileNotFoundError, match=r"the connection broke after 1000 of 78004 bytes"):
        fetch_file(TABLE, tmp_path / "b", [f"{server.url}/one"])
    assert (tmp_path / "b" / "t.csv.part").stat().st_size == 1000
    server.breaks_after = []
    server.asked.clear()
    assert fetch_file(TABLE, tmp_path / "b", [f"{server.url}/one"]).read_bytes() == CONTENT
    assert server.asked == [("/one/t.csv", "bytes=1000-")]


@pytest.mark.parametrize("tag", ['"v2"', None, 'W/"v1"'])
def test_a_half_of_another_version_is_not_continued(server, tmp_path, tag):
    server.tag = tag if tag != '"v2"' else '"v1"'
    server.breaks_after = [1000, 0, 0, 0, 0]
    with pytest.raises(FileNotFoundError):
        fetch_file(TABLE, tmp_path, [f"{server.url}/one"])
    server.breaks_after = []
    server.tag, server.files["/one/t.csv"] = tag, CONTENT.upper()
    assert fetch_file(TABLE, tmp_path, [f"{server.url}/one"]).read_bytes() == CONTENT.upper()


def test_the_next_mirror_is_asked(server, tmp_path):
    good = hashlib.sha256(CONTENT).hexdigest()
    server.files = {
        "/login/t.csv": b"<!DOCTYPE html><html>log in</html>",
        "/other/t.csv": b"a,b\n1,2\n",
        "/own/t.csv": CONTENT,
    }
    file = RemoteFile("t.csv", "a table", url=f"{server.url}/own/t.csv", sha256=good)
    mirrors = [f"{server.url}/{name}" for name in ("none", "login", "other")]
    assert fetch_file(file, tmp_path, mirrors).read_bytes() == CONTENT
    assert [p for p, _ in server.asked] == ["/none/t.csv", "/login/t.csv", "/other/t.csv", "/own/t.csv"]
    with pytest.raises(FileNotFoundError) as caught:
        fetch_file(RemoteFile("t.csv", "a table", by_hand="HERE", sha256=good), tmp_path / "b", mirrors)
    for part in ("HTTP Error 404", "is a web page, not the file", "SHA-256", "by hand from HERE and save it as"):
        assert part in str(caught.value)
    assert [p.name for p in (tmp_path / "b").iterdir() if "lock" not in p.name] == []


def test_half_a_zip_is_no_zip(server, tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.png", b"x" * 1000)
    server.files = {"/one/i.zip": buffer.getvalue()[:500], "/two/i.zip": buffer.getvalue()}
    file = RemoteFile("i.zip", "images")
    with pytest.raises(FileNotFoundError, match="no whole zip file"):
        fetch_file(file, tmp_path, [f"{server.url}/one"])
    assert zipfile.is_zipfile(fetch_file(file, tmp_path, [f"{server.url}/one", f"{server.url}/two"]))


def test_everything_that_is_missing_is_named(server, tmp_path):
    files = [RemoteFile("a.csv", "first", url=f"{server.url}/a.csv"), TABLE]
    with pytest.raises(FileNotFoundError) as caught:
        fetch_missing(files, tmp_path, offline=True)
    for part in (
        "2 of 2 published files are missing",
        "a.csv (first; offline=true or HF_HUB_OFFLINE=1 rules out a download)",
        "t.csv (a table; there is no direct link): fetch it by hand from https://example.org/folder",
        f"save it as {tmp_path / 't.csv'}",
    ):
        assert part in str(caught.value)
    assert server.asked == []
    with pytest.raises(ValueError, match="mirrors must be a list"):
        fetch_file(TABLE, tmp_path, "https://a.org")
    with pytest.raises(ValueError, match="must begin with https://"):
        fetch_file(TABLE, tmp_path, ["file:///etc"])


def test_seva_comes_from_a_mirror(server, seva_small, tmp_path):
    names = ("human_recog_df.csv", "things_concepts.tsv", "neurips_DB_human_clean.csv", "seva_production_pngs.zip")
    server.files = {f"/m/{name}": (seva_small / name).read_bytes() for name in names}
    server.files["/m/things128_images.zip"] = server.files["/m/seva_production_pngs.zip"]
    settings = {"fetch": True, "mirrors": [f"{server.url}/m"], "on_count": "warn", "items": "all"}
    data = seva_published(tmp_path / "root", **settings)
    assert len(data) == len(seva_published(seva_small, items="all", on_count="warn"))
    assert set(json.loads((tmp_path / "root" / "fetched.json").read_text())["files"]) == set(names)
    seva_published(tmp_path / "root", **settings, photographs=True)
    assert server.asked[-1] == ("/m/things128_images.zip", None)
    assert len(server.asked) == len(names) + 1
    direct = {name for name, file in FILES.items() if file.url}
    assert direct == {"seva_production_pngs.zip", "neurips_DB_human_clean.csv", "things128_images.zip"}
    with pytest.raises(FileNotFoundError, match=r"human_recog_df\.csv \(people's answers.*by hand from https://www"):
        seva_published(tmp_path / "none", fetch=True, offline=True, photographs=True)
