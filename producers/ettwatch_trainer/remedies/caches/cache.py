"""Loads and saves the compile cache of this process."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ettwatch import Recorder
from ettwatch_trainer.remedies import telling
from ettwatch_trainer.remedies.caches.archive import (
    HEAD_BYTES,
    STAGING,
    ArchiveError,
    listing,
    pack,
    read_head,
    unpack,
)
from ettwatch_trainer.remedies.caches.key import CacheKey
from ettwatch_trainer.remedies.caches.store import LEFT_OVER_S, Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CacheResult:
    """How a load went: whether code was found, how many bytes it had, and why not (or what was odd)."""

    hit: bool
    key: str
    bytes: int
    seconds: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CacheSaved:
    """How a save went: whether the store has this process's code now, how many bytes went there, and why not."""

    saved: bool
    key: str
    bytes: int
    seconds: float
    reason: str | None = None


class CompileCache:
    """Compiled code of one key in a store: a folder, or any URL that fsspec opens.

    An archive holds native code and pickles that `load` lets into this process: the store must be one that only
    those can write who may run code here. Its SHA-256 guards against damage, not against malice.
    """

    def __init__(
        self,
        store: str | Path,
        key: CacheKey,
        *,
        limit_bytes: int = 2 << 30,
        folder: str | Path | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """`folder`: inductor's cache folder from now on; where it is already if None. It should be the job's own.

        `limit_bytes`: what all archives in the store may take together; also the most that one may take unpacked.
        """
        if folder is not None:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder).absolute())
        self.key = key
        self._url, self._limit, self._recorder = str(store), limit_bytes, recorder
        self._loaded: list[str] | None = None

    @property
    def folder(self) -> Path:
        """Inductor's cache folder."""
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        return Path(cache_dir())

    def load(self) -> CacheResult:
        """Put what the store has for this key into inductor's cache; before anything is compiled.

        Never raises: whatever is wrong is a miss that says why, and then torch compiles as if there were no store.
        """
        began = time.perf_counter()
        with telling.phase(self._recorder, "pt2_compilation.cache_load") as span:
            size, reason, hit = 0, None, False
            try:
                data = Store(self._url).read(self.key.digest)
                if data is None:
                    reason = self._nothing()
                else:
                    size = len(data)
                    self._sweep()
                    mega = unpack(data, self.key, self.folder, self._limit)
                    hit, reason = True, _hand_to_torch(mega)
                    self._loaded = listing(self.folder)
                    self._used()
            except ArchiveError as error:
                reason = f"the archive is not taken: {error}"
            except Exception as error:  # whatever a store, a disk or torch may raise: the job compiles
                reason = f"{self._url} cannot be read: {type(error).__name__}: {error}"
            span.set(cache="hit" if hit else "miss", cache_key=self.key.digest, bytes=size)
            if reason is not None:
                span.set(reason=reason)
        return self._told(CacheResult(hit, self.key.digest, size, time.perf_counter() - began, reason))

    def save(self) -> CacheSaved:
        """Put what was compiled so far into the store, if there is anything new; after the first steps, on one rank.

        Never raises: a failure says why, and what was in the store stays. Then archives that were unused for
        longest are removed until the store is within its limit.
        """
        began = time.perf_counter()
        saved, size, reason = False, 0, None
        try:
            if self._loaded is not None and self._loaded == listing(self.folder):
                saved, reason = True, "nothing new was compiled"
            else:
                data = self._pack()
                store = Store(self._url)
                if data is None:
                    reason = "nothing was compiled"
                elif len(data) > self._limit:
                    reason = f"the archive has {len(data)} bytes, more than the store may hold ({self._limit})"
                else:
                    store.write(self.key.digest, data)
                    saved, size = True, len(data)
                    store.used(self.key.digest)
                    if removed := store.trim(self._limit, self.key.digest):
                        reason = f"removed for room: {', '.join(removed)}"
                    self._loaded = listing(self.folder)
        except Exception as error:  # a full disk, a store that is away: training goes on without
            reason = f"{self._url}: {type(error).__name__}: {error}"
        if not saved and reason:
            log.warning("the compile cache was not saved: %s", reason)
        return CacheSaved(saved, self.key.digest, size, time.perf_counter() - began, reason)

    def _pack(self) -> bytes | None:
        artifacts = torch.compiler.save_cache_artifacts()
        if artifacts is None and not listing(self.folder):
            return None
        return pack(self.folder, None if artifacts is None else artifacts[0], self.key)

    def _nothing(self) -> str:
        """Why there is nothing: for people, from the archive that was used last."""
        store = Store(self._url)
        for name in store.names()[:1]:
            head = read_head(store.read(name, HEAD_BYTES) or b"")
            differs = "; ".join(self.key.differences(head.key))
            return f"the store has nothing for this key; its newest archive is for another {differs}"
        return "the store is empty"

    def _used(self) -> None:
        try:
            Store(self._url).used(self.key.digest)
        except Exception as error:  # a store that may only be read
            log.debug("%s: %s", self._url, error)

    def _sweep(self) -> None:
        """Remove what a load that was killed has left in inductor's folder."""
        for path in self.folder.glob(f"{STAGING}*"):
            if time.time() - path.stat().st_mtime > LEFT_OVER_S:
                shutil.rmtree(path, ignore_errors=True)

    def _told(self, result: CacheResult) -> CacheResult:
        how: Callable[..., Any] = log.info if result.hit or result.reason == "the store is empty" else log.warning
        how("compile cache %s: %s", "hit" if result.hit else "miss", result.reason or result.key)
        return result


def _hand_to_torch(mega: bytes | None) -> str | None:
    """Let torch have its own artifacts; returns what went wrong. The files in the folder do without."""
    if mega is None:
        return None
    try:
        if torch.compiler.load_cache_artifacts(mega) is not None:
            return None
    except Exception as error:  # torch unpickles them
        return f"torch does not take its own artifacts ({type(error).__name__}: {error}); the cache folder was loaded"
    return "torch does not take its own artifacts; the cache folder was loaded"
