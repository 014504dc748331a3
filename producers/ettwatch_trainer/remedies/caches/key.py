"""What a compile cache must agree with to be taken: everything that compiled code depends on, by name."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

# Settings of the compiler that come by the environment; not those that say where files lie or how many help.
_SETTING = re.compile(r"^(TORCHINDUCTOR|TORCHDYNAMO|TRITON)_(?!.*(DIR|PATH|HOME|THREADS)$)")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class CacheKey:
    """The parts of a key, by name and in order. Equal keys have equal digests, and others do not."""

    parts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, *, model: torch.nn.Module | None = None, config: object = None) -> CacheKey:
        """The key of this process: torch, Python, device, CPU, compilers, inductor's settings, model and config.

        `config`: what of the job's settings goes into the compiled code (a mapping, a dataclass, a text). What is
        in it and changes from run to run, such as a folder's name, makes every run miss.
        """
        parts = {
            "torch": f"{torch.__version__} {torch.version.git_version}",
            "python": f"{sys.implementation.cache_tag} {platform.python_version()}",
            "platform": f"{sys.platform} {platform.machine()} {' '.join(platform.libc_ver())}".strip(),
            "cpu": _cpu(),
            "threads": str(torch.get_num_threads()),
            "device": _device(),
            "compiler": _compiler(os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")),
            "triton": _version("triton"),
            "inductor": _inductor(),
            "model": "none" if model is None else _digest(_structure(model)),
            "config": "none" if config is None else _digest(_plain(config)),
        }
        return cls(tuple(parts.items()))

    @property
    def digest(self) -> str:
        """Its short name: 32 hexadecimal digits."""
        return _digest(self.parts)

    def differences(self, other: CacheKey) -> list[str]:
        """The parts in which another key differs, for people: `torch (2.12.0, here 2.13.0)`."""
        mine, theirs = dict(self.parts), dict(other.parts)
        names = [*mine, *(name for name in theirs if name not in mine)]
        return [
            f"{name} ({theirs.get(name, 'not told')[:60]}, here {mine.get(name, 'not told')[:60]})"
            for name in names
            if mine.get(name) != theirs.get(name)
        ]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _plain(value: object) -> object:
    """A config as plain JSON. Addresses in memory are left out: they tell nothing and never repeat."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return [type(value).__qualname__, fields]
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(json.dumps(_plain(item), sort_keys=True) for item in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _ADDRESS.sub("", repr(value))


def _structure(model: torch.nn.Module) -> list[object]:
    """What a model is made of: its modules with their settings, its weights and buffers with their shapes."""
    modules = [
        [name, f"{type(module).__module__}.{type(module).__qualname__}", _ADDRESS.sub("", module.extra_repr())]
        for name, module in model.named_modules()
    ]
    tensors = [
        [name, str(tuple(tensor.shape)), str(tensor.dtype), tensor.device.type, tensor.requires_grad]
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]
    ]
    return [modules, tensors, model.training]


@cache
def _cpu() -> str:
    """What this CPU can do: code is built for it, and would be killed on another."""
    able = torch.backends.cpu.get_cpu_capability()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{able} {platform.processor()}"
    told: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features", "model name", "CPU implementer", "CPU part"):
            told.setdefault(name.strip(), " ".join(sorted(value.split())))
    return f"{able} {_digest(told)}"


def _device() -> str:
    if not torch.cuda.is_available():
        return "cpu"
    found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    kinds = sorted({f"{kind.name} {kind.major}.{kind.minor}x{kind.multi_processor_count}" for kind in found})
    return f"{', '.join(kinds)} cuda {torch.version.cuda} hip {torch.version.hip}"


@cache
def _compiler(name: str) -> str:
    """The first line of what the C++ compiler says of itself."""
    program = shutil.which(name)
    if program is None:
        return f"no {name}"
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{name}: {type(error).__name__}"
    return (done.stdout or done.stderr).partition("\n")[0]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _inductor() -> str:
    from torch._inductor import config

    settings = {name: value for name, value in os.environ.items() if _SETTING.match(name)}
    return _digest([_plain(config.save_config_portable()), _plain(settings)])
