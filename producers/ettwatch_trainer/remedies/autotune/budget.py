"""What a search for the fastest kernels may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a search. What no longer fits takes the library's kernel, which needs no search.

    `seconds`: for all operations together; the one that is being searched as it ends may go over it.
    `kernels`: tried for one operation, the library's among them.
    `backends`: where kernels come from, as inductor's `max_autotune_gemm_backends`; ATEN is the library.
    """

    seconds: float = 60.0
    kernels: int = 8
    backends: str = "ATEN,TRITON,CPP"

    def __post_init__(self) -> None:
        """Refuse what cannot work, and what would search without the library's kernel to compare with."""
        if not self.seconds >= 0:
            raise ValueError(f"seconds is {self.seconds}; give 0 or more")
        if self.kernels < 1:
            raise ValueError(f"kernels is {self.kernels}; give 1 or more")
        if "ATEN" not in [name.strip().upper() for name in self.backends.split(",")]:
            raise ValueError(f"backends is {self.backends!r}; ATEN must be one, or a slow kernel may be the only one")
