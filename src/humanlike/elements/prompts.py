"""Prompts with blanks: texts live in configuration, and their hash goes next to every score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from humanlike.files import sha256_value

_BLANK = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Prompt:
    """A prompt; a blank is a lower-case name in braces, other braces are text.

    Attributes:
        name: Name and version.
        user: The question.
        system: The system message; "" for models that take none.
        correction: What is added to the question when a reply could not be used; {reason} says why.

    Raises:
        ValueError: The question is empty, or the correction has another blank than {reason}.

    Example:
        >>> prompt = Prompt("example", "Is there a {element} on this {label}?")
        >>> prompt.filled(label="lion", element="mane"), prompt.source
        ('Is there a mane on this lion?', 'example@6dda438fefa2')
    """

    name: str
    user: str
    system: str = ""
    correction: str = "Your last reply could not be used: {reason}. Reply with the JSON object alone."

    def __post_init__(self) -> None:
        if not self.user.strip():
            raise ValueError(f"the prompt {self.name!r} asks nothing")
        if set(_BLANK.findall(self.correction)) - {"reason"}:
            raise ValueError(f"the correction of the prompt {self.name!r} may name {{reason}}, got {self.correction!r}")

    @property
    def source(self) -> str:
        """Name and the first 12 digits of a hash of the texts."""
        return f"{self.name}@{sha256_value(asdict(self))[:12]}"

    def requiring(self, *blanks: str) -> Prompt:
        """This prompt, after a check that the question and the system message have these blanks and no others.

        Raises:
            ValueError: They have others.
        """
        found = set(_BLANK.findall(self.user)) | set(_BLANK.findall(self.system))
        if found != set(blanks):
            raise ValueError(
                f"the prompt {self.name!r} needs the blanks {', '.join(f'{{{b}}}' for b in blanks)}, it has "
                f"{', '.join(f'{{{b}}}' for b in sorted(found)) or 'none'}"
            )
        return self

    def filled(self, **values: str) -> str:
        """The question with its blanks filled."""
        return _filled(self.user, values)

    def filled_system(self, **values: str) -> str:
        """The system message with its blanks filled."""
        return _filled(self.system, values)


def _filled(text: str, values: dict[str, str]) -> str:
    """All blanks in one pass, so that a value with braces stays as it is."""
    return _BLANK.sub(lambda blank: values[blank[1]], text)


def spoken(label: str) -> str:
    """A label as a person would say it: without underscores and without the number of a sense.

    Example:
        >>> spoken("hot_air_balloon"), spoken("mouse1")
        ('hot air balloon', 'mouse')
    """
    return label.replace("_", " ").rstrip("0123456789").strip() or label


def listed(words: Sequence[str]) -> str:
    """Words one below the other, each after a dash."""
    return "\n".join(f"- {word}" for word in words)
