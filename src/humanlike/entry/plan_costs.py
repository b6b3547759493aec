"""What a job will take: measured on a few micro-batches of its own network and images, the rest by arithmetic.

Legend: N items, B images a micro-batch, D features, K classes.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from humanlike.backbones.arithmetic import fixed_arithmetic
from humanlike.backbones.batches import MicroBatches
from humanlike.backbones.cache import FeatureCache, extraction_facts
from humanlike.backbones.extraction_settings import ExtractionSettings
from humanlike.backbones.layers import ModuleBackbone, input_shape
from humanlike.backbones.reduction import ReducedBackbone
from humanlike.elements.client import ChatClient
from humanlike.elements.client_questions import Question

WARM, TIMED = 1, 4
START_S = 20.0
"""Imports, composing, tables, figures and the page, once a job."""
RUN_FOLDER = 3 << 20
SHARD_OVERHEAD = 600
ITERATIONS = 95
"""Evaluations of a certified readout's objective, typical of features of a trained network."""
PEOPLE_BYTES = 480 << 20
"""Bootstrap, statistics, figures and pages, on top of features."""
PICTURE_TOKENS = 300
BYTES_OF_FEATURES = 4 + 8 + 8
"""A number of a feature: as stored, standardised in double precision, and one fold of it."""


@dataclass(frozen=True)
class Extraction:
    """The cost of features.

    Attributes:
        items: Images N that still have to go through the network.
        seconds: Wall time.
        network_s: Seconds of the network for one micro-batch.
        loading_s: Seconds to read and prepare one.
        batch_bytes: Memory that a forward pass takes beside the network.
        stored: Bytes that shards will add on disk.
        widths: View of a layer → D.
    """

    items: int
    seconds: float
    network_s: float
    loading_s: float
    batch_bytes: int
    stored: int
    widths: Mapping[str, int]


def resident_bytes() -> int:
    """Memory of this process now; where the system does not say, the most it has had."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return peak_bytes()


def peak_bytes() -> int:
    """The most memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)


def measured_extraction(
    backbone: Any, images: Any, layers: Sequence[str], settings: ExtractionSettings, cache_dir: Path, known: bool
) -> Extraction:
    """Run a few micro-batches through the network.

    Args:
        backbone: The network; its weights need not be the final ones.
        images: Where pixels come from.
        layers: Layers that are read.
        settings: How features are extracted.
        cache_dir: Folder of feature caches.
        known: Whether these are the final weights, so that stored features can be looked up.
    """
    if settings.channels_last and isinstance(backbone, ModuleBackbone):
        backbone.network.to(memory_format=torch.channels_last)
    reduction = settings.reduction
    views = [layer if reduction.is_nothing else reduction.view(layer) for layer in layers]
    runner = backbone if reduction.is_nothing else ReducedBackbone(backbone, reduction)
    shape = input_shape(backbone.transform)
    batches = MicroBatches(images, backbone.transform, settings.micro_batch, shape, settings.channels_last)
    widths, network, loading, batch_bytes = _calibrated(runner, batches, views, settings)
    missing = len(images)
    if known:
        facts = extraction_facts(backbone, images, shape, settings.arithmetic(torch.device("cpu")))
        cache = FeatureCache(cache_dir, facts, settings.micro_batch * settings.micro_batches_per_shard)
        missing = sum(stop - start for start, stop in map(cache.bounds, cache.missing(views)))
    count = -(-missing // settings.micro_batch)
    # Reading runs beside the network: the slower of the two sets the pace.
    pace = max(network, loading / max(1, settings.num_workers))
    shards = -(-missing // (settings.micro_batch * settings.micro_batches_per_shard))
    stored = sum(missing * (4 * width + 8) + SHARD_OVERHEAD * shards for width in widths.values())
    return Extraction(missing, count * pace, network, loading, batch_bytes, stored, widths)


def _calibrated(
    runner: Any, batches: MicroBatches, views: Sequence[str], settings: ExtractionSettings
) -> tuple[dict[str, int], float, float, int]:
    """Widths, seconds of network and of loading a micro-batch (the best of several), bytes of a forward pass."""
    network, loading, widths = [], [], dict[str, int]()
    before, threads = resident_bytes(), torch.get_num_threads()
    torch.set_num_threads(settings.cpu_threads)
    try:
        with torch.no_grad(), fixed_arithmetic("cpu", settings.dtype, settings.cpu_threads):
            for i in range(WARM + TIMED):
                watch = _Watch()
                batch = batches[i % len(batches)]
                loading.append(watch.seconds(1))
                watch = _Watch()
                found = runner.features(batch["x_B3HW"], views)
                network.append(watch.seconds(settings.cpu_threads))
                widths = {view: int(found[view].shape[1]) for view in views}
    finally:
        torch.set_num_threads(threads)
    rest = slice(WARM, None)
    return (
        widths,
        min(network[rest]),
        min(loading[rest]),
        max(0, max(peak_bytes(), resident_bytes()) - before),
    )


class _Watch:
    """Seconds that work takes on a machine that does nothing else: by the wall, or by its CPU time if that is less."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def seconds(self, threads: int) -> float:
        """Seconds since the watch was made, of work on so many threads."""
        return min(time.perf_counter() - self.wall, (time.process_time() - self.cpu) / threads)


def readout_seconds(num_items: int, width: int, num_labels: int, folds: int, iterations: int = ITERATIONS) -> float:
    """Wall time of a readout by L-BFGS: its products, at this machine's best pace for matrices of their shape."""
    rows = max(1, min(num_items, 2048))
    f_ND, w_DK = (torch.ones(shape, dtype=torch.float64) for shape in ((rows, width), (width, max(2, num_labels))))
    times: list[float] = []
    while len(times) < 5 or sum(times) < 0.1:
        watch = _Watch()
        f_ND @ w_DK
        times.append(watch.seconds(torch.get_num_threads()))
    product = min(times) * num_items / rows
    return 2 * product * iterations * (folds - 1)  # forward and gradient, each fold on all others


def memory_bytes(num_items: int, extraction: Extraction, network_bytes: int) -> int:
    """The most memory of a job's first process: what is loaded, and the larger of extraction and analysis."""
    widest = max(extraction.widths.values(), default=0)
    analysis = num_items * widest * BYTES_OF_FEATURES + PEOPLE_BYTES
    return network_bytes + max(extraction.batch_bytes, analysis)


def requests_and_tokens(client: ChatClient, questions: Sequence[Question]) -> tuple[int, int, int]:
    """Requests that are still to be sent, tokens that they will likely take, and the most that a budget reserves."""
    asked = [q for q in questions if not _is_answered(client, q)]
    return (
        len(asked),
        sum(map(_likely_tokens, asked)),
        sum(q.estimated_tokens(client.parameters) for q in asked),
    )


def _is_answered(client: ChatClient, question: Question) -> bool:
    return (
        client.cache.get(question.key(client.model, client.revision, client.parameters, client.structured)) is not None
    )


def _likely_tokens(question: Question) -> int:
    """Four characters a token; the reply names what its schema names, with a verdict each."""
    text = len(question.system) + len(question.user)
    names = json.dumps(dict(question.schema.get("properties", {})) if question.schema else {})
    return math.ceil(text / 4 + len(names) / 8) + PICTURE_TOKENS * len(question.pictures)


def weights_bytes(backbone: Any) -> int:
    """Bytes of parameters and buffers."""
    if not isinstance(backbone, torch.nn.Module):
        return 0
    return sum(t.numel() * t.element_size() for t in (*backbone.parameters(), *backbone.buffers()))
