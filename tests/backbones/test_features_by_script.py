"""Extraction by whole processes, as clusters and several jobs on one machine start them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import sys
    import numpy as np, pandas as pd, pytorch_lightning as pl
    from PIL import Image
    from humanlike.backbones.features import extract_features
    from humanlike.backbones.vision import TimmBackbone
    from humanlike.types import Sketches

    class Images:
        def __len__(self): return 65
        def load(self, i):
            return Image.fromarray(np.random.default_rng(i).integers(0, 256, (40, 40, 3), dtype=np.uint8))
        def content_hash(self, i): return str(i)
        def describe(self, i): return str(i)

    ids = [str(i) for i in range(65)]
    table = pd.DataFrame(dict(sketch_id=ids, concept="a", condition=0.0, image_id=ids))
    data = Sketches("noise", table, ("a",), Images())
    trainer = pl.Trainer(accelerator="cpu", devices=int(sys.argv[1]), strategy=sys.argv[2], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    backbone = TimmBackbone("test_efficientnet", weights=None, transform={"size": 32})
    f = extract_features(backbone, data, trainer=trainer, cache_dir=sys.argv[3], micro_batch=4,
        micro_batches_per_shard=2, threads=1)["pre_logits"]
    if trainer.is_global_zero:
        print("RESULT", f.rows.size, f.hashes["features"], f.info["shards_computed"])
"""


@pytest.mark.slow
def test_processes_started_by_script_change_no_bit(tmp_path):
    """65 items on 2 processes: a sampler that repeats items would give 66."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def run(devices: str, strategy: str, cache: str) -> list[str]:
        command = [sys.executable, str(script), devices, strategy, str(tmp_path / cache)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=dict(os.environ), check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return next(line for line in done.stdout.splitlines() if line.startswith("RESULT")).split()[1:]

    single, double = run("1", "auto", "single"), run("2", "ddp", "double")
    assert single == double == ["65", single[1], "9"]
    assert run("2", "ddp", "single") == ["65", single[1], "0"], "what one process cached serves two"


@pytest.mark.slow
def test_four_jobs_on_one_empty_cache(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, str(script), "1", "auto", str(tmp_path / "cache")]
    jobs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = [job.communicate(timeout=240) for job in jobs]
    assert [job.returncode for job in jobs] == [0] * 4, outputs
    digests = {line.split()[2] for out, _ in outputs for line in out.splitlines() if line.startswith("RESULT")}
    assert len(digests) == 1
    assert len(list((tmp_path / "cache").rglob("*.safetensors"))) == 9
