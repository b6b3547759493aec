"""`humanlike compare-elements A B …`: how alike lists of elements of several sources are, with intervals."""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from humanlike.elements.extraction_compare import ElementComparison
    from humanlike.elements.lists import ElementLists

RECORD, MEANS, CONCEPTS = "comparison.json", "means.csv", "concepts.csv"
# Printed values of GPT-OSS 20B against GPT-4o on the classes of CommonSketch (SEA, 2026).
PUBLISHED = {"soft_f1": 0.850, "clip_cosine": 0.941, "bertscore_f1": 0.813}
COLUMNS = ("exact_f1", "lemma_f1", "head_f1", "soft_f1", "text_cosine", "clip_cosine", "bertscore_f1")
HEADS = ("exact", "lemma", "noun", "soft", "text cosine", "CLIP cosine", "BERTScore")


def main(arguments: Sequence[str]) -> None:
    """Run the command: exit status 0, or 2 for wrong use; errors pass through as exceptions."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if len(given.sources) < 2:
        parser.error("name two sources or more")
    from humanlike.elements.extraction_compare import compare_elements
    from humanlike.entry.gathered_folder import folder_to_write

    folder = folder_to_write(given.out, "--out") if given.out else None
    sources = [source(text, given.min_runs) for text in given.sources]
    measures, record = _measures(given)
    found = {}
    for (i, a), (j, b) in itertools.combinations(enumerate(sources), 2):
        pair = compare_elements(a, b, **measures)
        found[(given.sources[i], given.sources[j])] = pair
    rows = {names: _row(pair, given) for names, pair in found.items()}
    print(_text(found, rows, record))
    if folder is not None:
        _write(folder, found, rows, record | {"seed": given.seed, "replicates": given.replicates})
        print(f"written to {given.out}: {RECORD}, {MEANS}, {CONCEPTS}")


def source(text: str, min_runs: int = 4) -> ElementLists:
    """Lists by name: a YAML file, the folder of an extraction, "shipped", "annotation:DATASET", or "TABLE#MODEL".

    Args:
        text: The name; TABLE is a CSV file of feature norms, MODEL a value of its column `llm`.
        min_runs: Of a table of norms: runs in which a feature must have come up.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It cannot be read, or has no such model.
    """
    from humanlike.elements.extraction_norms import norm_lists, norm_models
    from humanlike.elements.lists import ElementLists, shipped

    if text == "shipped":
        return shipped()
    if text.startswith("annotation:"):
        from humanlike.entry.conf import compose
        from humanlike.entry.targets import build

        dataset = text.removeprefix("annotation:")
        return ElementLists.from_annotation(build(compose("evaluate", [f"dataset={dataset}"]).dataset))
    name, _, model = text.partition("#")
    path = Path(name).expanduser()
    if re.search(r"\.csv(\.gz)?$", name):
        if not model:
            raise ValueError(f"{text} is a table of norms: say whose, {text}#MODEL ({', '.join(norm_models(path))})")
        return norm_lists(path, model, min_runs, words=False)  # as they were said: `exact` counts letters
    return ElementLists.from_yaml(path / "elements.yaml" if path.is_dir() else path)


def _measures(given: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of `compare_elements`, and what goes into the record."""
    import numpy as np

    measures: dict[str, Any] = {"element_text": given.element_text, "list_text": given.list_text}
    record: dict[str, Any] = {"element_text": given.element_text, "list_text": given.list_text}
    offline = given.offline or None
    if given.encoder or given.bertscore:
        from humanlike.elements.text_encoders import TransformerText

        _without_bars()
    if given.encoder:
        encoder = TransformerText(given.encoder, pooling=given.pooling, prefix=given.prefix, offline=offline)
        measures["encoder"], record["encoder"] = _remembered(encoder.embed, np.stack), encoder.source
    if given.bertscore:
        tokens = TransformerText(given.bertscore, layer=given.layer, offline=offline)
        measures |= {"tokens": _remembered(tokens.tokens, list), "idf": given.idf}
        record["bertscore"] = tokens.source.rpartition(", ")[0] + (", idf" if given.idf else "")
    if given.clip:
        from humanlike.backbones.clip_text import TextTower

        architecture, _, weights = given.clip.partition(":")
        if not weights:
            raise ValueError(f"--clip is {given.clip!r}; write ARCHITECTURE:WEIGHTS, such as ViT-B-32-quickgelu:openai")
        tower = TextTower(architecture, weights, offline=offline)
        measures["clip"] = _remembered(lambda texts: tower.embed(texts).numpy(), np.stack)
        record["clip"] = f"{given.clip}@{tower.weights_hash[:12]}"
    return measures, record


def _without_bars() -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()


def _remembered(encode: Callable[[Sequence[str]], Any], gather: Callable[[list[Any]], Any]) -> Any:
    """An encoder that computes no text twice: every source takes part in several pairs."""
    known: dict[str, Any] = {}

    def remembered(texts: Sequence[str]) -> Any:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
        return gather([known[text] for text in texts])

    return remembered


def _row(pair: ElementComparison, given: argparse.Namespace) -> dict[str, Any]:
    """Means and intervals of a pair, by name of the column."""
    means = pair.means
    intervals = pair.intervals(given.replicates, given.seed)
    return {k: {"mean": means[k], "low": intervals[k].low, "high": intervals[k].high} for k in means}


def _text(
    found: dict[tuple[str, str], ElementComparison], rows: dict[tuple[str, str], dict[str, Any]], record: dict[str, Any]
) -> str:
    """The table that is printed: a line a pair, F1 and cosines with 95% intervals over concepts."""
    shown = [c for c in COLUMNS if any(c in row for row in rows.values())]
    lines = [" | ".join(["A", "B", "concepts", *(HEADS[COLUMNS.index(c)] for c in shown)])]
    for (a, b), row in rows.items():
        cells = [f"{row[c]['mean']:.3f} [{row[c]['low']:.3f}, {row[c]['high']:.3f}]" for c in shown]
        lines.append(" | ".join([_short(a), _short(b), str(len(found[a, b].table)), *cells]))
    if any(c in PUBLISHED for c in shown):
        published = [f"{PUBLISHED[c]:.3f}" if c in PUBLISHED else "-" for c in shown]
        lines.append(" | ".join(["published: GPT-OSS 20B", "GPT-4o", "300", *published]))
        lines.append("the published values are of other concepts, and perhaps of other encoders")
    lines += [f"{name}: {record[name]}" for name in ("encoder", "clip", "bertscore") if name in record]
    return "\n".join(lines)


def _short(name: str) -> str:
    path, _, model = name.partition("#")
    return model or (path if path.startswith("annotation:") else Path(path).name)


def _write(
    folder: Path,
    found: dict[tuple[str, str], ElementComparison],
    rows: dict[tuple[str, str], dict[str, Any]],
    record: dict[str, Any],
) -> None:
    import pandas as pd

    from humanlike.files import write_json, write_text

    (folder / RECORD).unlink(missing_ok=True)  # written last: it says that all is there
    means: pd.DataFrame = pd.DataFrame(
        [{"a": a, "b": b, "measure": c, **value} for (a, b), row in rows.items() for c, value in row.items()]
    )
    concepts = pd.concat([pair.table.assign(a=a, b=b) for (a, b), pair in found.items()], ignore_index=True)
    write_text(folder / MEANS, means.to_csv(index=False))
    write_text(folder / CONCEPTS, concepts.to_csv(index=False))
    pairs = [
        {
            "a": a, "b": b, "sources": pair.sources, "concepts": len(pair.table), "only_a": pair.only_a,
            "only_b": pair.only_b, "means": rows[a, b],
        }
        for (a, b), pair in found.items()
    ]  # fmt: skip
    write_json(folder / RECORD, {**record, "published": PUBLISHED, "pairs": pairs})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="humanlike compare-elements",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        description=(
            "Compare lists of elements, every pair of sources over the concepts that both have: F1 by letters, by\n"
            "lemma and by noun, and with models by meaning; means over concepts with 95% intervals. In a pair\n"
            "precision is the share of A's elements that B has.\n\n"
            "  humanlike compare-elements outputs/extract/gpt-4o shipped\n"
            "  humanlike compare-elements 'norms.csv.gz#gpt-4' 'norms.csv.gz#OTHER' shipped --out comparison/\n"
            "  humanlike compare-elements a.yaml b.yaml --encoder sentence-transformers/all-MiniLM-L6-v2 \\\n"
            "    --clip ViT-B-32-quickgelu:openai --bertscore FacebookAI/roberta-large --layer 17\n\n"
            "A source is a YAML file of lists, the folder of `humanlike extract`, shipped, annotation:DATASET, or\n"
            "TABLE.csv#MODEL for a table of feature norms (llm, concept_id, feature, n_runs, is_part)."
        ),
    )
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="two or more")
    parser.add_argument("--encoder", metavar="MODEL", help="sentence encoder: folder, owner/name or .gguf file")
    parser.add_argument("--pooling", choices=("mean", "first", "last"), help="default: as the model says, else mean")
    parser.add_argument("--prefix", default="", help='what the encoder needs before a text, such as "query: "')
    parser.add_argument("--clip", metavar="ARCH:WEIGHTS", help="text tower of open_clip, for the cosine of lists")
    parser.add_argument("--bertscore", metavar="MODEL", help="encoder of tokens for BERTScore")
    parser.add_argument("--layer", type=int, help="its hidden layer (bert-score takes 17 of roberta-large)")
    parser.add_argument("--idf", action="store_true", help="rare tokens weigh more in BERTScore")
    parser.add_argument("--element-text", default="{element}", help="what is encoded of an element: {element}, {label}")
    parser.add_argument("--list-text", default="{elements}", help="what is encoded of a list: {elements}, {label}")
    parser.add_argument("--min-runs", type=int, default=4, help="runs that must name a feature of norms (default: 4)")
    parser.add_argument("--replicates", type=int, default=2000, help="bootstrap resamples (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the resamples")
    parser.add_argument("--offline", action="store_true", help="never download")
    parser.add_argument("--out", metavar="FOLDER", help="write tables and record")
    return parser
