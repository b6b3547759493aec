"""The order of the folders is the order of the pipeline; imports, lazy ones included, only go back along it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ORDER = (
    "types",
    "rng",
    "files",
    "compilation",
    "cores",
    "place",
    "processes",
    "interfaces",
    "metrics",
    "stats",
    "data",
    "backbones",
    "readouts",
    "learners",
    "elements",
    "losses",
    "losses_features",
    "generators",
    "benchmarks",
    "reports",
    "entry",
)
PACKAGE = Path(__file__).resolve().parents[1] / "src" / "humanlike"
# The package's front door and `python -m` lead to the entry points by design; `__version__` is a constant.
FRONT_DOOR = {"__init__.py", "__main__.py"}
MODULES = sorted(p for p in PACKAGE.rglob("*.py") if str(p.relative_to(PACKAGE)) not in FRONT_DOOR)


def imported(path: Path) -> set[str]:
    """First name below `humanlike` of every import in a file, in functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import; write `from humanlike...`"
            modules = [
                f"{node.module}.{a.name}" if node.module == "humanlike" else node.module or "" for a in node.names
            ]
        names |= {m.split(".")[1] for m in modules if m.startswith("humanlike.")}
    return names - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert own in ORDER, f"{own} has no place in the pipeline's order"
    later = {name for name in imported(path) if ORDER.index(name) > ORDER.index(own)}
    assert not later, f"{path.relative_to(PACKAGE)} imports from later stages: {sorted(later)}"


def test_metrics_and_stats_stand_on_records_alone():
    allowed = {"types", "rng", "files", "compilation", "metrics", "stats"}
    for path in MODULES:
        if path.relative_to(PACKAGE).parts[0] in {"metrics", "stats"}:
            assert imported(path) <= allowed, path


def test_the_guard_sees_lazy_imports(tmp_path):
    probe = tmp_path / "probe.py"
    probe.write_text("def f():\n    from humanlike.entry.conf import compose\n    import humanlike.reports.html\n")
    assert imported(probe) == {"entry", "reports"}
