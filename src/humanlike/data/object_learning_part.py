"""Which part of an object learning experiment is read: some subtasks, objects or sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from humanlike.data.object_learning import subtask_pair

ON_REPEAT = ("raise", "first")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """A part of an experiment.

    Attributes:
        subtasks: Only these subtasks ("ObjA,ObjB"), or the first so many; None = all.
        objects: Only subtasks whose two objects are both among these; None = all.
        sessions: At most so many sessions of a subtask; None = all.
        on_repeat: A participant did one subtask twice: "raise", or keep the "first" session.
    """

    subtasks: int | Sequence[str] | None = None
    objects: Sequence[str] | None = None
    sessions: int | None = None
    on_repeat: str = "raise"

    def __post_init__(self) -> None:
        if self.on_repeat not in ON_REPEAT:
            raise ValueError(f"on_repeat must be one of {ON_REPEAT}, got {self.on_repeat!r}")
        if isinstance(self.subtasks, str) or isinstance(self.objects, str):
            raise ValueError("subtasks and objects are lists; write ['ObjA,ObjB'] and [ObjA, ObjB]")
        if self.sessions is not None and self.sessions < 2:
            raise ValueError(f"sessions must be at least 2, for a variance, got {self.sessions}")

    @property
    def named(self) -> Pairs | None:
        """The subtasks that are named, or None where they are not."""
        if self.subtasks is None or isinstance(self.subtasks, int):
            return None
        return tuple(subtask_pair(text) for text in self.subtasks)

    def choose(self, every: Pairs, where: str) -> Pairs:
        """The chosen subtasks, in the order of `every`.

        Raises:
            ValueError: Naming what is not there, or when nothing is left.
        """
        chosen = every
        if isinstance(self.subtasks, int):
            if not 1 <= self.subtasks <= len(every):
                raise ValueError(f"{where}: subtasks, as a number, must lie in 1 … {len(every)}, got {self.subtasks}")
            chosen = every[: self.subtasks]
        elif self.named is not None:
            wanted = set(self.named)
            absent = sorted(wanted - set(every))
            if absent:
                raise ValueError(
                    f"{where}: no subtask {','.join(absent[0])}; there are {len(every)}, such as {','.join(every[0])}"
                )
            chosen = tuple(pair for pair in every if pair in wanted)
        if self.objects is not None:
            strange = sorted(set(self.objects) - {c for pair in every for c in pair})
            if strange:
                raise ValueError(f"{where}: no subtask has the object {strange[0]!r}")
            chosen = tuple(pair for pair in chosen if set(pair) <= set(self.objects))
        if not chosen:
            raise ValueError(f"{where}: no subtask is left; objects must name both objects of at least one")
        return chosen

    def flags(self, every: Pairs, chosen: Pairs) -> list[str]:
        """The statement that must stand next to scores of a part."""
        if len(chosen) == len(every) and self.sessions is None:
            return []
        kept = "all sessions" if self.sessions is None else f"at most {self.sessions} sessions each"
        return [f"part of the data: {len(chosen)} of {len(every)} subtasks, {kept}"]
