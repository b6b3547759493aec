"""The published files: a zip saved by hand, a packed archive, a listing and a server; hostile ones too."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
import zipfile
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from humanlike.data import fetch, object_learning_files
from humanlike.data.object_learning_files import CONTENT, ZIPS, need_files, published_files, unpack_images
from humanlike.data.object_learning_published import hobj

NAMES = list(CONTENT)


def pack(folder):
    """The images as they are published: one archive, and no folder."""
    with tarfile.open(folder / "images.tar.gz", "w:gz") as archive:
        archive.add(folder / "images", arcname="images")
    shutil.rmtree(folder / "images")
    return folder


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def same_images(folder, published):
    wanted = {k: v for k, v in contents(published).items() if k.startswith("images/")}
    assert {k: v for k, v in contents(folder).items() if k.startswith("images/")} == wanted


def test_packed_images_are_unpacked_once(changed, published):
    data = hobj(pack(changed), on_count="warn", verify="all")
    assert len(data) == 24
    same_images(changed, published)
    assert not (changed / ".images.unpacking").exists()
    (changed / "images.tar.gz").write_bytes(b"not looked at again")
    hobj(changed, on_count="warn")


def test_a_broken_unpacking_goes_on(changed, published):
    pack(changed)
    whole = (changed / "images.tar.gz").read_bytes()
    (changed / "images.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="not a whole archive"):
        unpack_images(changed)
    assert not (changed / "images").exists()
    half = contents(changed / ".images.unpacking")
    assert half
    first = changed / ".images.unpacking" / sorted(half)[0]
    first.write_bytes(b"half")
    (changed / "images.tar.gz").write_bytes(whole)
    unpack_images(changed)
    same_images(changed, published)


def hostile(root, name, kind=tarfile.REGTYPE):
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = "/etc/passwd"
    content = b"x" if kind == tarfile.REGTYPE else b""
    member.size = len(content)
    with tarfile.open(root / "images.tar.gz", "w:gz") as archive:
        archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("images/../../evil.png", tarfile.REGTYPE, "leads outside"),
        ("/images/evil.png", tarfile.REGTYPE, "leads outside"),
        ("images/link.png", tarfile.SYMTYPE, "link or a device"),
        ("images/link.png", tarfile.LNKTYPE, "link or a device"),
        ("images/fifo.png", tarfile.FIFOTYPE, "link or a device"),
        ("other/a.png", tarfile.REGTYPE, "no folder images/"),
    ],
)
def test_hostile_archives_are_refused(tmp_path, name, kind, message):
    root = tmp_path / "data"
    root.mkdir()
    hostile(root, name, kind)
    with pytest.raises(ValueError, match=message):
        unpack_images(root)
    assert not (root / "images").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


def test_an_archive_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(object_learning_files, "MAX_IMAGE_BYTES", 0)
    hostile(tmp_path, "images/a.png")
    with pytest.raises(ValueError, match="no image is that large"):
        unpack_images(tmp_path)


@pytest.mark.parametrize(("top", "packed"), [("", True), ("data/", True), ("data/", False)])
def test_the_zip_saved_by_hand(changed, published, tmp_path, top, packed):
    if packed:
        pack(changed)
    root = tmp_path / "root"
    root.mkdir()
    with zipfile.ZipFile(root / ZIPS[0], "w") as archive:
        for name, content in contents(changed).items():
            archive.writestr(f"{top}{name}", content)
    data = hobj(root, "one_shot", on_count="warn")
    assert data.people.correct_ST.shape == (4, 20)
    same_images(root, published)


def test_a_zip_that_leads_outside(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    with zipfile.ZipFile(root / ZIPS[0], "w") as archive:
        archive.writestr("../meta-CatchImageset.csv", "x")
    with pytest.raises(ValueError, match="leads outside"):
        need_files(root, NAMES, fetch=False)
    assert not (tmp_path / "meta-CatchImageset.csv").exists()


def test_what_is_missing_is_named_with_the_way_by_hand(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"7 of 7 .*meta-MutatorWarmup.*osf.io/pj6wm.*pj6wm.zip"):
        need_files(tmp_path, NAMES, fetch=False)
    with pytest.raises(FileNotFoundError, match=r"offline=true.*By hand"):
        need_files(tmp_path, NAMES, fetch=True, mirrors=["http://127.0.0.1:9/x"], offline=True)


@pytest.fixture
def osf(changed, monkeypatch, serve):
    """A server with the listing in two pages and a folder, and the files; it breaks the first answer of each file."""
    pack(changed)
    monkeypatch.setattr(fetch, "WAIT_S", 0.0)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    broken: set[str] = set()
    asked: list[tuple[str, str | None]] = []

    def entry(name):
        content = (changed / name).read_bytes()
        return {
            "attributes": {
                "kind": "file",
                "materialized_path": f"/data/{name}",
                "extra": {"hashes": {"sha256": hashlib.sha256(content).hexdigest()}},
            },
            "links": {"download": f"{url}/file/{name}"},
        }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Range")))
            if self.path.startswith("/file/"):
                content = (changed / self.path.removeprefix("/file/")).read_bytes()
            else:
                content = json.dumps(pages[self.path]).encode()
            start = int(self.headers["Range"][6:-1]) if "Range" in self.headers else 0
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.send_header("ETag", '"v1"')
            self.end_headers()
            cut = self.path.startswith("/file/") and self.path not in broken
            broken.add(self.path)
            self.wfile.write(content[start : start + 100] if cut else content[start:])

    url = serve(Handler)
    behavior = [n for n in NAMES if n.startswith("behavior/")]
    others = [n for n in NAMES if n not in behavior]
    folder = {
        "attributes": {"kind": "folder"},
        "relationships": {"files": {"links": {"related": {"href": f"{url}/behavior"}}}},
    }
    pages = {
        "/list": {"data": [folder, *map(entry, others[:2])], "links": {"next": f"{url}/more"}},
        "/more": {"data": list(map(entry, others[2:])), "links": {"next": None}},
        "/behavior": {"data": list(map(entry, behavior)), "links": {}},
    }
    monkeypatch.setattr(object_learning_files, "OSF_API", f"{url}/list")
    return {"url": url, "asked": asked, "source": changed, "pages": pages}


def test_the_listing_gives_every_file_with_its_digest(osf):
    found = published_files()
    assert set(found) == set(NAMES)
    for name, file in found.items():
        assert file.sha256 == hashlib.sha256((osf["source"] / name).read_bytes()).hexdigest()
        assert file.name == Path(name).name


def test_everything_is_fetched_resumed_and_checked(osf, tmp_path, published):
    root = tmp_path / "root"
    data = hobj(root, on_count="warn", fetch=True)
    assert len(data) == 24
    assert ("/file/images.tar.gz", "bytes=100-") in osf["asked"]
    same_images(root, published)
    before = len(osf["asked"])
    hobj(root, on_count="warn", fetch=True)
    assert len(osf["asked"]) == before


def test_another_content_than_listed_is_refused(osf, tmp_path):
    listed = osf["pages"]["/more"]["data"][0]
    listed["attributes"]["extra"]["hashes"]["sha256"] = "0" * 64
    with pytest.raises(FileNotFoundError, match=r"meta-MutatorWarmup.*SHA-256"):
        need_files(tmp_path / "root", NAMES, fetch=True)


def test_a_listing_of_another_form(osf, tmp_path):
    osf["pages"]["/list"]["data"] = [{"name": "x"}]
    with pytest.raises(ValueError, match="another form than expected"):
        published_files()
    with pytest.raises(FileNotFoundError, match="By hand"):
        need_files(tmp_path / "root", NAMES, fetch=True)


def test_a_listing_without_end(osf, monkeypatch):
    monkeypatch.setattr(object_learning_files, "MAX_PAGES", 3)
    osf["pages"]["/more"]["links"]["next"] = f"{osf['url']}/more"
    with pytest.raises(ValueError, match="more than 3 pages"):
        published_files()
