"""`novel_objects`, the embedded demo of object learning: new objects, rendered, and *simulated* people.

The people are a known learner on a known layer, so that what a benchmark should find is known. They exist once features
exist: the data set carries the recipe (`SimulatedPeople`), which the benchmark carries out in its own pass over the
images.
"""

from __future__ import annotations

from pathlib import Path

from humanlike.data.object_learning import (
    EXPERIMENTS,
    HIGH_VARIATION,
    NUM_TRIALS,
    Condition,
    ObjectLearningData,
    SimulatedPeople,
)
from humanlike.data.object_learning_images import with_conditions

SOURCE = "novel objects rendered by this package (Apache-2.0); people are simulated"
PEOPLE = ("simulated", "none")


def novel_objects(
    experiment: str = HIGH_VARIATION,
    subtasks: int = 8,
    images: int = 100,
    warmup: int = 50,
    people: str = "simulated",
    truth: SimulatedPeople | None = None,
    seed: int = 0,
    size: int = 256,
    photographs: str | Path | None = None,
) -> ObjectLearningData:
    """The demo: nothing is read or downloaded, images are rendered when asked for.

    Every image depends on the seed, its object and its number only: fewer subtasks or images are a part of more.

    Args:
        experiment: "high_variation" (Experiment 1) or "one_shot" (a support image and 60 transformations an object).
        subtasks: Pairs of objects; Experiment 1 of the paper has 64, its one-shot experiment 32.
        images: Images an object under high variation; a session shows at most 100 of a pair's.
        warmup: Images of eight further objects on which features are calibrated.
        people: "simulated" or "none".
        truth: Who the simulated people are; default `SimulatedPeople()`.
        seed: Seed of objects, views and backgrounds. That of the people is `truth.seed`.
        size: Side of the images in pixels.
        photographs: Folder of photographs that stand behind the objects; default seeded 1/f noise.

    Raises:
        ValueError: For numbers out of range or unknown words.

    Example:
        >>> data = novel_objects(subtasks=1, images=5, warmup=4)
        >>> data.subtask_names, data.num_trials, data.flags
        (('NovelObject000,NovelObject001',), 10, ('simulated_participants',))
    """
    from humanlike.data.novel_objects import (
        NoiseBackgrounds,
        PhotographBackgrounds,
        high_variation_images,
        one_shot_images,
        warmup_images,
    )

    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {EXPERIMENTS}, got {experiment!r}")
    if people not in PEOPLE:
        raise ValueError(f"people must be one of {PEOPLE}, got {people!r}")
    for name, value, least in (("subtasks", subtasks, 1), ("images", images, 1), ("warmup", warmup, 2)):
        if value < least:
            raise ValueError(f"{name} must be {least} or more, got {value}")
    behind = NoiseBackgrounds() if photographs is None else PhotographBackgrounds(photographs)
    trials = NUM_TRIALS[experiment]
    conditions: tuple[Condition, ...] = ()
    if experiment == HIGH_VARIATION:
        shown = high_variation_images(2 * subtasks, images, seed, size, behind)
        trials = min(trials, 2 * images)
    else:
        shown, conditions = with_conditions(one_shot_images(2 * subtasks, seed, size, behind), "novel_objects")
    names = shown.categories
    simulated = people == "simulated"
    return ObjectLearningData(
        name="novel_objects" if experiment == HIGH_VARIATION else "novel_objects_one_shot",
        experiment=experiment,
        subtasks=tuple(zip(names[::2], names[1::2], strict=True)),
        images=shown,
        warmup=warmup_images(8, warmup, seed, size, behind),
        people=(truth or SimulatedPeople()) if simulated else None,
        conditions=conditions,
        num_trials=trials,
        flags=("simulated_participants",) if simulated else ("no_people",),
        source=SOURCE,
        simulated=simulated,
    )
