"""SEVA's published files in their published layout: real ids, concepts and names, made-up answers and pictures.

`build(folder, shared_data)` is what tests use. From a shell:

    python tests/reference/seva_tree.py FOLDER --shared ../shared/data
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

BUDGETS = (4, 8, 16, 32)
PHOTOGRAPHS = 16
PEOPLE = {"human": 1_700, "machine": 1_478}
MODELS = ("vgg", "clip")
SUFFIXES = ("b", "s", "n")


def build(
    folder: Path,
    shared_data: Path,
    concepts: int = 128,
    photographs: int = PHOTOGRAPHS,
    judgments: int = 12,
    every: int = 1,
    models: tuple[str, ...] = (),
    seed: int = 0,
) -> Path:
    """Write the tree.

    Args:
        folder: Where it goes.
        shared_data: Folder with seva_index/ and things/.
        concepts: How many of the 128 concepts; the ambiguous names and canvas, whose sketch the analysis drops, first.
        photographs: Photographs a concept with judged sketches.
        judgments: Judgments a sketch.
        every: Only every n-th sketch that nobody judged is there.
        models: Models with a pickle of class probabilities.
        seed: Of the answers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(shared_data / "things" / "things_concepts.tsv", folder / "things_concepts.tsv")
    shutil.copyfile(shared_data / "things" / "spose_embedding_66d_sorted.txt", folder / "THINGS_spose.txt")
    labels = pd.read_csv(folder / "things_concepts.tsv", sep="\t")["uniqueID"].to_numpy(object)
    unique = _unique_ids(shared_data, concepts)
    ids = json.loads((shared_data / "seva_index" / "sketch_ids.json").read_text())
    rng = np.random.default_rng(seed)
    sketches = _sketches(unique, ids, photographs, every, rng)
    _metadata(sketches, rng).to_csv(folder / "neurips_DB_human_clean.csv")
    judged = sketches[sketches["judged"]]
    people = min(PEOPLE["human"], max(judgments, len(judged) * judgments // 40))
    trials = _trials(judged, labels, judgments, people, rng)
    trials.to_csv(folder / "human_recog_df.csv")
    machine = judged.assign(
        filename_recog=[f"{p}_{b}.png" for p, b in zip(judged["photo"], judged["budget"], strict=True)]
    )
    people = min(PEOPLE["machine"], max(judgments, len(judged) * judgments // 40))
    trials = _trials(machine, labels, judgments, people, rng)
    trials.drop(columns=["filename", "num_strokes"]).to_csv(folder / "machine_recog_df.csv")
    pictures = [_picture(n) for n in range(4)]
    _zip(folder / "seva_production_pngs.zip", sketches["filename_recog"], sketches["budget"], pictures)
    _zip(folder / "seva_clipasso_pngs.zip", machine["filename_recog"], machine["budget"], pictures)
    for model in models:
        _pickle(folder / "1854_human_model_logits", model, judged["sketch_id"], labels, rng)
        _pickle(folder / "1854_machine_model_logits", model, machine["filename_recog"].str[:-4], labels, rng)
    return folder


def _unique_ids(shared_data: Path, concepts: int) -> dict[str, str]:
    """Name → uniqueID; where a name has several, the last of them, as the index leaves it open."""
    table = pd.read_csv(shared_data / "seva_index" / "concepts128.csv", keep_default_na=False)
    found = {}
    for name, unique, candidates in zip(table["concept"], table["uniqueID"], table["candidates"], strict=True):
        found[name] = unique or candidates.replace(";", " ").replace("|", " ").replace(",", " ").split()[-1]
    first = [n for n, u in zip(table["concept"], table["uniqueID"], strict=True) if not u]
    order = [*first, "canvas", "hot-air balloon", *[n for n in found if n not in first]]
    return {n: found[n] for n in list(dict.fromkeys(n for n in order if n in found))[:concepts]}


def _sketches(unique, ids, photographs, every, rng) -> pd.DataFrame:
    """One row a sketch; the first of every photograph and budget is judged."""
    rows = []
    for concept, unique_id in unique.items():
        photos = [f"{unique_id}_{n + 1:02d}{SUFFIXES[n % 3]}" for n in range(photographs)]
        if concept == "canvas":
            photos[min(8, photographs - 1)] = "canvas_09s"
        for budget in BUDGETS:
            own = ids[concept][str(budget * 1000)]
            for number, key in enumerate(own):
                if number < photographs or number % every == 0:
                    photo = photos[number % photographs]
                    rows.append((key, concept, unique_id, photo, budget, number < photographs))
    table = pd.DataFrame(rows, columns=["sketch_id", "concept", "uniqueID", "photo", "budget", "judged"])
    table["filename"] = table["photo"] + ".jpg"
    table["filename_recog"] = table["concept"] + "_" + table["photo"] + "_" + table["sketch_id"] + ".png"
    table["num_strokes"] = rng.poisson(2 + 0.3 * table["budget"].to_numpy())
    return table


def _metadata(sketches: pd.DataFrame, rng) -> pd.DataFrame:
    stroke = "[{'x': 161, 'y': 133, 'color': '#000000'}, {'x': 160, 'y': 131, 'color': '#000000'}]"
    skills = {c: rng.integers(1, 8, len(sketches)) for c in ("subjectiveSkill", "subjectiveImagery", "effort")}
    return pd.DataFrame(
        {
            "sketch_id": sketches["sketch_id"],
            "concept": sketches["concept"],
            "filename": sketches["filename"],
            "uniqueID": sketches["uniqueID"],
            "strokes": [f"[{stroke}]"] * len(sketches),
            "undo_history": ["[]"] * len(sketches),
            "abstraction": sketches["budget"] * 1000,
            "num_strokes": sketches["num_strokes"],
            **{f"participant_{name}": values for name, values in skills.items()},
        }
    )


def _trials(sketches: pd.DataFrame, labels: np.ndarray, judgments: int, people: int, rng) -> pd.DataFrame:
    """Trials of every sketch and the rows that the analysis leaves out: practice, lost file names, empty answers."""
    table = sketches.loc[sketches.index.repeat(judgments)]
    table = table[["filename_recog", "filename", "concept", "uniqueID", "budget", "num_strokes"]]
    table = table.rename(columns={"budget": "abstraction"}).reset_index(drop=True)
    table.insert(0, "subjectID", [f"subject_{n % people:04d}" for n in range(len(table))])
    right = rng.random(len(table)) < 0.02 + 0.007 * table["abstraction"].to_numpy()
    other = labels[rng.integers(0, len(labels), (len(table), 5))]
    number = rng.integers(1, 6, len(table))
    table["response"] = [
        str(dict(enumerate(([unique] if hit else []) + list(said[:n])[: 5 - hit])))
        for unique, hit, said, n in zip(table["uniqueID"], right, other, number, strict=True)
    ]
    extra = table.iloc[[0, 1, 2, 3]].copy()
    extra["subjectID"] = "subject_0000"
    extra.loc[0, ["concept", "uniqueID", "filename_recog"]] = ["cat", "cat", "cat.png"]
    extra.loc[1, "filename_recog"] = np.nan
    extra.loc[2, "response"] = "{}"
    extra.loc[3, ["concept", "uniqueID", "filename_recog"]] = ["cat", "cat", np.nan]
    return pd.concat([table, extra], ignore_index=True)


def _picture(number: int) -> bytes:
    """A small transparent PNG with a black line, as the published sketches are."""
    image = Image.new("RGBA", (24, 24), (0, 0, 0, 0))
    ImageDraw.Draw(image).line((2, 2, 21, 6 + 4 * number), fill=(0, 0, 0, 255), width=2)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def _zip(path: Path, names: pd.Series, budgets: pd.Series, pictures: list[bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, budget in zip(names, budgets, strict=True):
            archive.writestr(f"{path.stem}/{name}", pictures[BUDGETS.index(budget)])


def _pickle(folder: Path, model: str, sketch_ids: pd.Series, labels: np.ndarray, rng) -> None:
    """Class probabilities as the published analysis kept them: a table with an array in every row."""
    folder.mkdir(exist_ok=True)
    p_NL = rng.dirichlet(np.full(len(labels), 0.05), len(sketch_ids))
    table = pd.DataFrame(
        {
            "sketch_id": pd.Series(list(sketch_ids), dtype=object),
            f"proba_{model}_late": pd.Series(list(p_NL), dtype=object),
            f"top1_{model}_late": pd.Series(list(labels[p_NL.argmax(1)]), dtype=object),
        }
    )
    table.columns = pd.Index(list(table.columns), dtype=object)
    table.to_pickle(folder / f"things_df_human_metrics_neurips_{model}_late.pkl", protocol=4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--concepts", type=int, default=128)
    given = parser.parse_args()
    build(given.folder, given.shared, concepts=given.concepts, models=MODELS)
