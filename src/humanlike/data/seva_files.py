"""The files that SEVA is published as: their names, where each is to be had, and fetching those with a direct link."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from humanlike.data.archives import Archive, open_archive
from humanlike.data.fetch import RemoteFile, fetch_missing

TRIALS = "human_recog_df.csv"
MACHINE_TRIALS = "machine_recog_df.csv"
CONCEPTS = "things_concepts.tsv"
SPACE = "THINGS_spose.txt"
METADATA = "neurips_DB_human_clean.csv"
PNGS = "seva_production_pngs"
MACHINE_PNGS = "seva_clipasso_pngs"
PHOTOGRAPHS = "things128_images"
PROBABILITIES = "1854_human_model_logits"
MACHINE_PROBABILITIES = "1854_machine_model_logits"

REPOSITORY = "github.com/cogtoolslab/visual_abstractions_benchmarking_public2023"
BUCKET = "https://seva-benchmark.s3.us-west-2.amazonaws.com"
SHARED_FOLDER = "https://www.dropbox.com/scl/fo/9yd0terq5axnwekab2gjv/h?rlkey=cq8zv5laiuw1rsyg2oxaz43lw&dl=0"

FILES = {
    file.name: file
    for file in (
        RemoteFile(f"{PNGS}.zip", "the sketches people drew", url=f"{BUCKET}/{PNGS}.zip"),
        RemoteFile(METADATA, "facts about all 89,797 sketches", url=f"{BUCKET}/{METADATA}"),
        RemoteFile(f"{PHOTOGRAPHS}.zip", "the photographs that were drawn", url=f"{BUCKET}/{PHOTOGRAPHS}.zip"),
        RemoteFile(TRIALS, "people's answers to human sketches", by_hand=SHARED_FOLDER),
        RemoteFile(MACHINE_TRIALS, "people's answers to CLIPasso sketches", by_hand=SHARED_FOLDER),
        RemoteFile(CONCEPTS, "the 1,854 THINGS concepts", by_hand=SHARED_FOLDER),
        RemoteFile(SPACE, "the semantic space of THINGS", by_hand=SHARED_FOLDER),
    )
}
"""Every published file by name; the README of the repository links to all of them."""


def need_files(
    folder: Path, names: Sequence[str], *, fetch: bool, mirrors: Sequence[str] = (), offline: bool | None = None
) -> None:
    """Make sure that published files are there, fetching those that can be.

    Args:
        folder: Where they lie.
        names: Names of the files.
        fetch: Whether missing files are fetched, and files that were fetched are checked by content.
        mirrors: See `fetch_missing`.
        offline: See `fetch_missing`.

    Raises:
        FileNotFoundError: Naming every file that is missing and where to get it.
        ValueError: A fetched file has changed.
    """
    if fetch:
        fetch_missing([FILES[name] for name in names], folder, mirrors, offline)
        return
    missing = [FILES[name] for name in names if not (folder / name).is_file()]
    if missing:
        listed = "; ".join(f"{file.name} ({file.what}) from {file.url or file.by_hand}" for file in missing)
        raise FileNotFoundError(
            f"seva: no file {folder / missing[0].name}; missing of the published files: {listed}; save them in {folder}"
        )


def png_archive(folder: Path, images: str | Path | None, name: str) -> Archive:
    """The images that were named, or the folder or zip `name` in `folder`.

    Raises:
        FileNotFoundError: When there is none, with what is expected.
    """
    try:
        if images is not None:
            return open_archive(images)
        return open_archive(folder / name if (folder / name).is_dir() else folder / f"{name}.zip")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"seva: {error}; expected {name}.zip or its folder, or name another with images=PATH; the README of "
            f"{REPOSITORY} links to what is published"
        ) from error
