"""What is packed: a wheel that finds its configuration from any folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest


@pytest.mark.slow
def test_the_wheel_holds_conf_and_works_from_elsewhere(repository, tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*build, str(repository)], check=True, capture_output=True)
    wheel = next(tmp_path.glob("humanlike-*.whl"))
    names = set(zipfile.ZipFile(wheel).namelist())
    here = {f"humanlike/{p.relative_to(repository)}" for p in (repository / "conf").rglob("*.yaml")}
    assert here <= names
    assert {n for n in names if n.startswith("humanlike/conf/")} == here
    assert any(n.endswith("report.html.j2") or "templates/" in n for n in names)
    assert "humanlike/py.typed" in names
    with zipfile.ZipFile(wheel) as archive:  # our own archive, made a moment ago, into a fresh folder
        archive.extractall(tmp_path / "site")
    code = "from humanlike.entry.conf import conf_dir, compose; print(conf_dir()); print(compose('evaluate').protocol)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path / "site" / "humanlike" / "conf") in done.stdout
    assert done.stdout.splitlines()[-1] == "corrected"
