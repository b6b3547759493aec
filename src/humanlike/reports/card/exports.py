r"""The card's headline tables for papers: Markdown, and LaTeX with booktabs.

The LaTeX needs `\usepackage{booktabs}` alone; signs beyond ASCII are written as commands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from humanlike.reports.card.card import Card
from humanlike.reports.card.groups import Group
from humanlike.reports.card.values import CardValue, lower_is_better
from humanlike.reports.tables import markdown_table
from humanlike.reports.wording import MISSING, SMALL, interval, number, short_title

_SPECIAL: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "−": "$-$", "–": "--", "—": "---", "…": r"\dots{}", "±": r"$\pm$", "²": "$^2$",
    "ₙ": "$_n$", "Δ": r"$\Delta$", "κ": r"$\kappa$", "ρ": r"$\rho$", "√": r"$\surd$", "→": r"$\rightarrow$",
    "·": r"$\cdot$", "×": r"$\times$", "’": "'", "“": "``", "”": "''", "\u2009": r"\,",
}  # fmt: skip


def digits_of(score: str) -> int:
    """Decimals that show a score; squared errors of proportions are small."""
    return 5 if score.startswith(SMALL) else 3


def with_interval(value: float | None, low: float | None, high: float | None, digits: int) -> str:
    """A number with its interval in brackets, where it has one.

    Example:
        >>> with_interval(0.5, 0.4, 0.6, 2), with_interval(0.5, None, None, 1), with_interval(None, None, None, 1)
        ('0.50 (0.40 to 0.60)', '0.5', '–')
    """
    between = interval(low, high, digits)
    return number(value, digits) if value is None or between == MISSING else f"{number(value, digits)} ({between})"


def rank_text(rank: int | None, rank_high: int | None) -> str:
    """A rank as the range of places that the data allow.

    Example:
        >>> rank_text(1, 4), rank_text(2, 2), rank_text(None, None)
        ('1–4', '2', '–')
    """
    if not rank or not rank_high:
        return MISSING
    return str(rank) if rank == rank_high else f"{rank}–{rank_high}"


def group_order(card: Card, group: Group, score: str) -> list[str]:
    """Labels of a group's models from the best to the worst by a score, those without a value last."""
    sign = 1.0 if lower_is_better(score) else -1.0
    values = card.values[group.key]

    def place(label: str) -> tuple[bool, float, str]:
        value = _value(values[label], score)
        return (value is None, 0.0 if value is None else sign * value, label.lower())

    return sorted(values, key=place)


def _value(values: Mapping[str, CardValue], score: str) -> float | None:
    return values[score].value if score in values else None


def headline_rows(card: Card, group: Group) -> tuple[list[str], list[list[str]]]:
    """Heads and texts of a group's table: ranks, the headline with its interval and share of the ceiling, others."""
    scores = card.scores[group.key]
    if not scores:
        return ["model"], [[entry.label] for entry in group.entries]
    first, *others = scores
    ranking = card.rankings[group.key].get(first)
    heads = ["model", "rank", "group", short_title(first), "share of ceiling", *map(short_title, others)]
    rows = []
    for label in group_order(card, group, first):
        values = card.values[group.key][label]
        own = values.get(first, CardValue(None))
        rank = None if ranking is None else ranking.rank.get(label)
        high = None if ranking is None else ranking.rank_high.get(label)
        letters = "" if ranking is None else ranking.letters.get(label, "")
        rows.append(
            [
                label,
                rank_text(rank, high),
                letters or MISSING,
                with_interval(own.value, own.low, own.high, digits_of(first)),
                with_interval(own.fraction, own.fraction_low, own.fraction_high, 2),
                *(number(_value(values, name), digits_of(name)) for name in others),
            ]
        )
    return heads, rows


def card_markdown(card: Card) -> str:
    """The groups' tables with what to know of them, as Markdown."""
    parts = ["# Report card"]
    for group in card.groups:
        parts.append(f"## {_plain(group.name)} ({group.key})")
        parts += [f"> {_plain(text)}" for text in (group.apart, *group.notes, *group_sentences(card, group)) if text]
        parts.append(markdown_table(*headline_rows(card, group)))
    if card.skipped:
        parts += ["## Not read", markdown_table(["folder", "why"], [list(row) for row in card.skipped])]
    return "\n\n".join(parts) + "\n"


def group_sentences(card: Card, group: Group) -> list[str]:
    """How a group was ranked, and why its headline has no share of a ceiling."""
    said = []
    if group.simulated:
        said.append("The “people” are a simulation. These numbers say nothing about human beings.")
    scores = card.scores[group.key]
    if not scores:
        return [*said, "No score of these runs has a value."]
    ranking = card.rankings[group.key].get(scores[0])
    said.append("One model alone is not ranked." if ranking is None else ranking.how)
    reasons = {v[scores[0]].reason for v in card.values[group.key].values() if scores[0] in v and v[scores[0]].reason}
    return [*said, *(f"{short_title(scores[0])} as a share of the ceiling: {reason}." for reason in sorted(reasons))]


def card_latex(card: Card) -> dict[str, str]:
    """Key of a group → its table in LaTeX."""
    return {group.key: _latex(group, *headline_rows(card, group)) for group in card.groups}


def _latex(group: Group, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        f"% {group.name}, version {group.facts['version']}, data {group.facts['data hash'][:16]}".replace("\n", " "),
        rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        " & ".join(map(latex_text, heads)) + r" \\",
        r"\midrule",
        *(" & ".join(map(latex_text, row)) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    r"""A text with LaTeX's own signs escaped; other signs beyond ASCII stay, for XeLaTeX and newer pdfLaTeX.

    Example:
        >>> latex_text("resnet_50 & R² −1")
        'resnet\\_50 \\& R$^2$ $-$1'
    """
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def _plain(text: str) -> str:
    return text.replace("<", "&lt;").replace("\n", " ")
