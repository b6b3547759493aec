"""The lists of a data set's labels from a language model, all or none."""

from __future__ import annotations

from collections.abc import Mapping

from humanlike.elements.extraction import ElementExtractor
from humanlike.elements.lists import ElementLists, known_senses, shipped
from humanlike.elements.prompts import spoken
from humanlike.types import Sketches


def extracted_lists(
    extractor: ElementExtractor, data: Sketches, senses: Mapping[str, str] | None = None
) -> ElementLists:
    """Ask a model for the elements of every concept that occurs; what it answered before is not asked again.

    Args:
        extractor: Asks the model.
        data: The data set.
        senses: Label → how to say it, or a concept of the shipped lists, for labels of several things.

    Raises:
        ValueError: Concepts of which the model gave no list, each with the reason.
        EndpointError: The run cannot go on. What was answered is kept.
    """
    concepts = said_concepts(data, senses)
    found = extractor.extract(concepts)
    if found.failed:
        first = "; ".join(f"{concept}: {why}" for concept, why in list(found.failed.items())[:3])
        raise ValueError(
            f"{found.model} gave no list of elements for {len(found.failed)} of {len(concepts)} concepts ({first}); "
            "ask again (client.retry_failures=true), change the prompt, or give the lists as a file "
            "(`humanlike extract` writes one; benchmark.elements=FILE)"
        )
    return found.lists


def said_concepts(data: Sketches, senses: Mapping[str, str] | None = None) -> dict[str, str]:
    """Every concept that occurs in a data set → how it is put to a model.

    Args:
        data: The data set.
        senses: Label → how to say it, or a concept of the shipped lists; before what is known of the data set.
    """
    meant = {**known_senses(data.name), **(senses or {})}
    return {concept: said_as(concept, meant.get(concept)) for concept in sorted(set(data.table["concept"]))}


def said_as(concept: str, meant: str | None) -> str:
    """How a concept is put to a model; of a word of several things, with parts that tell which is meant."""
    if meant is None:
        return spoken(concept)
    if meant not in shipped():
        return spoken(meant)
    return f"{spoken(concept)} (the one with {', '.join(shipped()[meant][:2])})"
