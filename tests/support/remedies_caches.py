"""A process that compiles a small model with a compile cache, and tells what it found and built."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]


def compile_with(store: Path, folder: Path, *, spool: Path, spoil: bool = False) -> dict[str, Any]:
    """Run this module in a new process, as an attempt or another host would; what it tells.

    `spoil`: it finds an archive under its key that is damaged.
    """
    told = {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_VEC_ISA_OK": "1"}
    told |= {"ETTWATCH_SPOOL": str(spool)}
    command = [sys.executable, "-m", "support.remedies_caches", str(store), str(folder), str(int(spoil))]
    done = subprocess.run(command, env=told, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _built(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.so")}


def _main(store: str, folder: str, spoil: str) -> None:
    import torch
    from torch._dynamo.utils import counters

    import ettwatch
    from ettwatch_trainer.remedies.caches import CacheKey, CompileCache

    recorder = ettwatch.init(job="compiles")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    key = CacheKey.of(model=model, config={"width": 16})
    if spoil == "1":
        Path(store).mkdir()
        (Path(store) / f"{key.digest}.ettcache").write_bytes(b"{}\nnothing")
    cache = CompileCache(store, key, folder=folder, recorder=recorder)
    loaded = cache.load()
    before = _built(Path(folder))
    # Not `model.compile()`: torch does not look into the forward of a Sequential as it does into a trainer's own.
    compiled: Any = torch.compile(model)
    loss = compiled(torch.ones(4, 8)).square().mean()
    torch.autograd.backward(loss)
    saved = cache.save()
    recorder.end()
    print(
        json.dumps(
            {
                "hit": loaded.hit,
                "reason": loaded.reason,
                "built": len(_built(Path(folder)) - before),
                "kernels": len(before),
                "graphs_found": counters["inductor"]["fxgraph_cache_hit"]
                + counters["aot_autograd"]["autograd_cache_hit"],
                "saved": saved.saved,
                "save_reason": saved.reason,
                "loss": float(loss).hex(),
                "gradients": [
                    float(weight.grad.sum()).hex() for weight in model.parameters() if weight.grad is not None
                ],
            }
        )
    )


if __name__ == "__main__":
    _main(*sys.argv[1:])
