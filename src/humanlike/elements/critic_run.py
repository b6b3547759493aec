"""The critic of a training: made once and kept in the run's folder, or read from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from humanlike.elements.critic import Critic, fit_critic
from humanlike.elements.critic_drawn import network_file, save_drawn_critic, saved_drawn_critic
from humanlike.elements.critic_file import load_critic, save_critic
from humanlike.interfaces import Backbone
from humanlike.types import Sketches

FILE = "critic.safetensors"


def run_critic(
    critic: str | Path | Callable[..., Critic] | None,
    backbone: Backbone,
    data: Sketches,
    folder: str | Path,
    *,
    layer: str | None = None,
    cache_dir: str | Path | None = None,
    seed: int = 0,
    resume: bool = True,
) -> Critic:
    """The critic that a training asks for.

    Args:
        critic: A file that an earlier training left; or what makes a critic from backbone, data, `layer`, `cache_dir`
            and `seed`, such as `fit_critic` and `drawn_critic`; None: `fit_critic`.
        backbone: The network of a critic that has none of its own.
        data: What a critic is fitted on.
        folder: The run's folder, where a critic that is made here is kept, beside it its network if it has its own.
        layer: Layer; None: the backbone's default.
        cache_dir: Folder of feature caches and of trained critics.
        seed: Global seed.
        resume: Take what the folder keeps.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file is damaged, or the critic of another backbone.
    """
    if isinstance(critic, (str, Path)):
        return _read(critic, backbone)
    file = Path(folder) / FILE
    if resume and file.is_file():
        return _read(file, backbone)
    made = (critic or fit_critic)(backbone, data, layer=layer, cache_dir=cache_dir, seed=seed)
    (save_critic if made.backbone is backbone else save_drawn_critic)(file, made)
    return made


def _read(file: str | Path, backbone: Backbone) -> Critic:
    return saved_drawn_critic(file) if network_file(file).is_file() else load_critic(file, backbone)
