"""Archives: folder and zip give the same, and names that lead outside are refused."""

import pickle
import zipfile

import pytest

from humanlike.data.archives import FolderArchive, ZipArchive, checked_name, open_archive


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "files"
    for name in ("b/2.txt", "a/1.txt", ".hidden/x.txt", "a/.DS_Store"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\nsecond\n")
    return root


@pytest.fixture
def zipped(folder):
    path = folder.parent / "files.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.rglob("*"):
            archive.write(file, file.relative_to(folder))
    return path


def test_folder_and_zip_agree(folder, zipped):
    archives = open_archive(folder), open_archive(zipped), open_archive(folder.parent, "files.zip")
    assert [type(a) for a in archives] == [FolderArchive, ZipArchive, ZipArchive]
    for archive in archives:
        assert archive.names() == ("a/1.txt", "b/2.txt")
        assert archive.read("a/1.txt") == b"a/1.txt\nsecond\n"
        assert list(archive.lines("b/2.txt")) == [b"b/2.txt\n", b"second\n"]
        assert archive.describe("a/1.txt").endswith("a/1.txt")
        assert pickle.loads(pickle.dumps(archive)) == archive


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "C:/x", "a\\..\\x", ""])
def test_names_that_lead_outside_are_refused(name, folder, tmp_path):
    with pytest.raises(ValueError, match="leads outside"):
        checked_name(name, "x.zip")
    with pytest.raises(ValueError, match="leads outside"):
        FolderArchive(folder).read(name)


def test_a_zip_with_an_outside_member_is_refused(tmp_path):
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../evil.txt", "x")
    with pytest.raises(ValueError, match=r"evil\.zip: refused the member '../evil.txt'"):
        ZipArchive(path).names()


def test_bombs_damage_and_absence_are_sentences(tmp_path, zipped):
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("big.txt", bytes(4_000_000))
    with pytest.raises(ValueError, match="decompression bomb"):
        ZipArchive(bomb).read("big.txt")
    with pytest.raises(FileNotFoundError, match=r"no member 'c\.txt'"):
        ZipArchive(zipped).read("c.txt")
    broken = tmp_path / "broken.zip"
    broken.write_bytes(zipped.read_bytes()[:50])
    with pytest.raises(ValueError, match="not a whole zip file"):
        ZipArchive(broken).names()
    with pytest.raises(FileNotFoundError, match="no folder or zip file"):
        open_archive(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"neither a folder nor a \.zip"):
        open_archive(tmp_path / "files" / "a" / "1.txt")


def test_linked_folders_are_followed_but_not_in_circles(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "3.txt").write_text("3")
    (folder / "c").symlink_to(elsewhere)
    (folder / "b" / "round").symlink_to(folder)
    (elsewhere / "self").symlink_to(elsewhere)
    archive = open_archive(folder)
    assert archive.names() == ("a/1.txt", "b/2.txt", "c/3.txt")
    assert archive.read("c/3.txt") == b"3"
