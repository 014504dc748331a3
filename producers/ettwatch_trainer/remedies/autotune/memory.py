"""What was chosen before, in a small file: the kernel of each operation, and how fast the whole was."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ettwatch_trainer.remedies.writing import write_whole

VERSION = 1


@dataclass(frozen=True, slots=True)
class Kernel:
    """The kernel that won one operation: its stable name, inductor's for people, and its milliseconds."""

    choice: str
    name: str
    ms: float
    tried: int


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of one step, compiled with the chosen kernels and without a search. `same`: both compute the same."""

    tuned_s: float
    plain_s: float
    same: bool = True

    @property
    def pays(self) -> bool:
        """Whether the chosen kernels are to be used: they compute the same, and are not slower."""
        return self.same and self.tuned_s <= self.plain_s


@dataclass(slots=True)
class Memory:
    """The choices of one key. `reason`: why there are none, where that is so."""

    path: Path
    key: str
    reason: str | None = None
    kernels: dict[str, Kernel] = field(default_factory=dict)
    speed: Speed | None = None
    searches: int = 0  # how often it was begun anew or went on

    @classmethod
    def open(cls, path: Path, key: str) -> Memory:
        """Read the file; one that is missing, bad, or of another key gives an empty memory. Never raises."""
        memory = cls(path, key)
        try:
            read = json.loads(path.read_bytes())
            if read["version"] != VERSION:
                memory.reason = f"{path} has version {read['version']!r}; this program reads {VERSION}"
            elif read["key"] != key:
                memory.reason = f"{path} was chosen for another key ({read['key']}, here {key})"
            else:
                kernels = {str(name): Kernel(**kernel) for name, kernel in read["kernels"].items()}
                speed = Speed(**read["speed"]) if read["speed"] is not None else None
                if speed is not None and not (speed.tuned_s > 0 and speed.plain_s > 0):
                    raise ValueError(f"{speed} cannot be")
                memory.kernels, memory.speed, memory.searches = kernels, speed, int(read["searches"])
        except FileNotFoundError:
            memory.reason = f"there is no {path} yet"
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            memory.reason = f"{path} holds no choices ({type(error).__name__}: {error}); it is ignored"
        return memory

    def save(self) -> None:
        """Write it, whole or not at all. Raises OSError."""
        kernels = {name: asdict(kernel) for name, kernel in sorted(self.kernels.items())}
        speed = asdict(self.speed) if self.speed is not None else None
        about = {"version": VERSION, "key": self.key, "searches": self.searches, "speed": speed, "kernels": kernels}
        write_whole(self.path, json.dumps(about, indent=1).encode() + b"\n")

    def forget(self, reason: str) -> None:
        """Choose anew, for a reason."""
        self.kernels, self.speed, self.reason = {}, None, reason
        self.searches += 1
