"""Which concepts `humanlike extract` asks about, and how each is put to a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omegaconf import DictConfig


def asked_concepts(config: DictConfig) -> dict[str, str]:
    """Concept → how it is said.

    Args:
        config: `concepts` (names, name → words, or a file), `senses`, and `dataset` where there are no concepts.

    Raises:
        FileNotFoundError: `concepts` is neither names nor a file.
        ValueError: There are none, one stands twice, or both concepts and a data set are given.
    """
    from omegaconf import OmegaConf

    from humanlike.elements.extraction_lists import said_as, said_concepts
    from humanlike.elements.prompts import spoken
    from humanlike.entry.targets import build
    from humanlike.types import Sketches

    senses = {str(k): str(v) for k, v in dict(config.senses or {}).items()}
    given: Any = OmegaConf.to_container(config.concepts) if OmegaConf.is_config(config.concepts) else config.concepts
    if (given is None) == (config.get("dataset") is None):
        raise ValueError("name what to ask about: concepts=[lion,car], concepts=FILE, or dataset=NAME; one of them")
    if given is None:
        data = build(config.dataset)
        if not isinstance(data, Sketches):
            raise ValueError(f"the data set {data.name} has no sketches of concepts; give concepts=[…]")
        return said_concepts(data, senses)
    where = "concepts"
    if isinstance(given, str):
        where, given = str(given), _read(Path(given).expanduser())
    if isinstance(given, Mapping):
        _checked(given, where)
        return {c: spoken(words) if isinstance(words, str) else said_as(c, senses.get(c)) for c, words in given.items()}
    names = list(given)
    _checked(names, where)
    return {c: said_as(c, senses.get(c)) for c in names}


def _checked(names: Iterable[Any], where: str) -> None:
    """Words, at least one, none twice."""
    found = list(names)
    wrong = [n for n in found if not isinstance(n, str) or not n.strip()]
    if not found or wrong:
        said = f"{wrong[0]!r} is no name; put it into quotes" if wrong else "there are none"
        raise ValueError(f"{where} needs names of things: {said}")
    twice = sorted({n for n in found if found.count(n) > 1})
    if twice:
        raise ValueError(f"{where}: {twice[0]!r} stands twice; keep one")


def _read(path: Path) -> Any:
    """A file of concepts: YAML (names, name → words, or lists of elements, whose names count), else one a line."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; names are written concepts=[lion,car], in brackets")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text in UTF-8 ({error}); save it as one") from error
    if path.suffix not in (".yaml", ".yml"):
        lines = text.splitlines()
        return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    import yaml  # type: ignore[import-untyped]

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not a YAML file ({' '.join(str(error).split())})") from error
    if isinstance(value, Mapping) and isinstance(value.get("concepts"), Mapping):
        value = value["concepts"]
    if not isinstance(value, list | dict):
        raise ValueError(f"{path} must hold names of things: a list, or lines `name: how to say it`")
    return value
