"""The archive and the store without a compiler: whatever is wrong is a miss with its reason, and nothing is touched."""

import dataclasses
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ettwatch_trainer.remedies import writing
from ettwatch_trainer.remedies.caches import CacheKey, CompileCache
from ettwatch_trainer.remedies.caches import cache as caching
from ettwatch_trainer.remedies.caches import key as key_module
from ettwatch_trainer.remedies.caches.store import Store

pytestmark = pytest.mark.torch

KEY = CacheKey((("torch", "2.13.0 abc"), ("cpu", "AVX512 1")))
OTHER = CacheKey((("torch", "2.12.0 abc"), ("cpu", "AVX512 1")))
FILES = {"ab/kernel.so": b"\x7fELF" * 50, "cd/graph.py": b"x = 1\n", "fxgraph/k/entry": b"", "locks/ab.lock": b""}
KEPT = {name: data for name, data in FILES.items() if not name.startswith("locks")}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor's folder is the variable's; here nothing was compiled, so torch has no artifacts."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setattr(torch.compiler, "save_cache_artifacts", lambda: None)


def fill(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one archive of KEY."""
    compiled = fill(tmp_path / "compiled", FILES)
    saved = CompileCache(tmp_path / "store", KEY, folder=compiled).save()
    assert saved.saved, saved.reason
    return tmp_path / "store"


@pytest.fixture
def sealed(store: Path) -> Path:
    return store / f"{KEY.digest}.ettcache"


def miss(store: Path, key: CacheKey = KEY, **more: Any) -> str:
    """Load, which must miss and leave an empty folder empty; the reason."""
    empty = store.parent / "empty"
    result = CompileCache(store, key, folder=empty, **more).load()
    assert not result.hit
    assert result.reason
    assert not empty.exists() or not list(empty.iterdir())
    return result.reason


def test_what_was_saved_is_loaded_by_another_process_elsewhere(store: Path, tmp_path: Path) -> None:
    result = CompileCache(store, KEY, folder=tmp_path / "elsewhere").load()
    assert (result.hit, result.key, result.reason) == (True, KEY.digest, None)
    assert result.bytes > 0
    assert content(tmp_path / "elsewhere") == KEPT


def test_what_is_there_already_stays(store: Path, tmp_path: Path) -> None:
    mine = fill(tmp_path / "mine", {"cd/graph.py": b"mine", "own": b"1"})
    assert CompileCache(store, KEY, folder=mine).load().hit
    assert content(mine) == {**KEPT, "cd/graph.py": b"mine", "own": b"1"}


def test_a_cache_of_another_torch_is_never_taken(store: Path, sealed: Path) -> None:
    assert "torch (2.13.0 abc, here 2.12.0 abc)" in miss(store, OTHER)
    sealed.rename(store / f"{OTHER.digest}.ettcache")
    assert "made for another torch (2.13.0 abc, here 2.12.0 abc)" in miss(store, OTHER)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.data())
def test_a_truncated_archive_is_a_miss(store: Path, sealed: Path, data: st.DataObject) -> None:
    whole = sealed.read_bytes()
    try:
        sealed.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        miss(store)
    finally:
        sealed.write_bytes(whole)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_a_flipped_bit_is_never_taken_as_whole(store: Path, sealed: Path, data: st.DataObject) -> None:
    whole = sealed.read_bytes()
    bits = bytearray(whole)
    bits[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        sealed.write_bytes(bits)
        folder = store.parent / "flipped"
        result = CompileCache(store, KEY, folder=folder).load()
        # In the first line a bit may be of no matter, such as in the number of bytes unpacked; the files are whole.
        assert not result.hit or content(folder) == KEPT
    finally:
        sealed.write_bytes(whole)


def forge(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], unpacked: int | None = None) -> None:
    """An archive of KEY with any members, sealed as it should be."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    payload = packed.getvalue()
    head = {
        "ettwatch_compile_cache": 1,
        "key": dict(KEY.parts),
        "payload_bytes": len(payload),
        "unpacked_bytes": sum(len(data) for _, data in members) if unpacked is None else unpacked,
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    path.write_bytes(json.dumps(head).encode() + b"\n" + payload)


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    "bad",
    [
        tarfile.TarInfo("files/../../escaped"),
        tarfile.TarInfo("../escaped"),
        tarfile.TarInfo("/tmp/escaped"),
        tarfile.TarInfo("files//etc/escaped"),
        tarfile.TarInfo("files/a/../../escaped"),
        tarfile.TarInfo("files/"),
        tarfile.TarInfo("files/a\\..\\escaped"),
        tarfile.TarInfo("elsewhere/escaped"),
        special("files/link", tarfile.SYMTYPE, "/etc"),
        special("files/hard", tarfile.LNKTYPE, "files/good"),
        special("files/device", tarfile.CHRTYPE),
        special("files/pipe", tarfile.FIFOTYPE),
        special("files/folder", tarfile.DIRTYPE),
    ],
    ids=lambda info: f"{info.name}-{info.type!r}",
)
def test_an_entry_that_leads_out_makes_a_miss_of_the_whole(store: Path, sealed: Path, bad: tarfile.TarInfo) -> None:
    forge(sealed, [(tarfile.TarInfo("files/good"), b"good"), (bad, b"")])
    before = sorted(path for path in store.parent.rglob("*") if "empty" not in path.parts)
    assert bad.name.rstrip("/") in miss(store).replace("\\\\", "\\")
    assert sorted(path for path in store.parent.rglob("*") if "empty" not in path.parts) == before
    assert not Path("/tmp/escaped").exists()


def test_more_than_it_says_or_than_may_be_is_not_unpacked(store: Path, sealed: Path) -> None:
    forge(sealed, [(tarfile.TarInfo("files/big"), b"\0" * 5_000_000)], unpacked=100)
    assert "more than it says" in miss(store)
    forge(sealed, [(tarfile.TarInfo("files/big"), b"\0" * 5_000_000)])
    assert "5000000 bytes unpacked" in miss(store, limit_bytes=100_000)


def test_files_twice_in_one_place_make_a_miss(store: Path, sealed: Path) -> None:
    forge(sealed, [(tarfile.TarInfo("files/a"), b"a"), (tarfile.TarInfo("files/a/b"), b"b")])
    miss(store)


@pytest.mark.parametrize(
    "junk", [b"", b"\n", b"junk", b"{}\n", b"[1]\n", b'{"ettwatch_compile_cache":2}\n', b"\0" * 70_000]
)
def test_what_is_no_archive_is_a_miss(store: Path, sealed: Path, junk: bytes) -> None:
    sealed.write_bytes(junk)
    assert "archive is not taken" in miss(store)


def test_torchs_own_artifacts_are_handed_to_torch_and_may_be_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch.compiler, "save_cache_artifacts", lambda: (b"artifacts", None))
    assert CompileCache(tmp_path / "store", KEY, folder=fill(tmp_path / "compiled", FILES)).save().saved
    given_to_torch: list[bytes] = []

    def take(data: bytes) -> object:
        given_to_torch.append(data)
        return object()

    monkeypatch.setattr(torch.compiler, "load_cache_artifacts", take)
    assert CompileCache(tmp_path / "store", KEY, folder=tmp_path / "one").load().reason is None
    assert given_to_torch == [b"artifacts"]

    def bad(data: bytes) -> None:
        raise EOFError("pickle")

    monkeypatch.setattr(torch.compiler, "load_cache_artifacts", bad)
    result = CompileCache(tmp_path / "store", KEY, folder=tmp_path / "two").load()
    assert result.hit
    assert "EOFError" in (result.reason or "")
    assert content(tmp_path / "two") == KEPT


def fails_with(error: OSError) -> Callable[..., Any]:
    def fail(*given: Any, **named: Any) -> Any:
        raise error

    return fail


def test_a_full_disk_while_saving_leaves_what_was_there(
    store: Path, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(store)
    cache = CompileCache(store, KEY, folder=fill(store.parent / "more", {**FILES, "new.so": b"new"}))
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fails_with(OSError(28, "No space left on device")))
        result = cache.save()
    assert not result.saved
    assert "No space left" in (result.reason or "")
    assert content(store) == before
    assert cache.save().saved


def test_a_full_disk_while_loading_is_a_miss(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", fails_with(OSError(28, "No space left on device")))
        assert "No space left" in miss(store)
    assert CompileCache(store, KEY, folder=store.parent / "empty").load().hit


def test_a_store_that_is_no_store_is_a_miss_and_a_failed_save(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    compiled = fill(tmp_path / "compiled", FILES)
    for url in ("nonsense://bucket", str(tmp_path / "file")):
        cache = CompileCache(url, KEY, folder=compiled)
        assert not cache.load().hit
        saved = cache.save()
        assert not saved.saved
        assert url in (saved.reason or "")


def test_nothing_compiled_and_nothing_new_are_not_written(tmp_path: Path, store: Path) -> None:
    assert CompileCache(tmp_path / "other", KEY, folder=tmp_path / "none").save().reason == "nothing was compiled"
    assert not (tmp_path / "other").exists()
    cache = CompileCache(store, KEY, folder=tmp_path / "warm")
    assert cache.load().hit
    again = cache.save()
    assert (again.saved, again.bytes, again.reason) == (True, 0, "nothing new was compiled")
    fill(tmp_path / "warm", {"ef/new.so": b"new"})
    assert cache.save().bytes > 0
    assert CompileCache(store, KEY, folder=tmp_path / "third").load().hit
    assert content(tmp_path / "third") == {**KEPT, "ef/new.so": b"new"}


def key(number: int) -> CacheKey:
    return CacheKey((("config", str(number)),))


def test_the_store_is_bounded_and_what_is_unused_longest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000_000))
    monkeypatch.setattr(caching, "Store", lambda url: Store(url, now=lambda: float(next(clock))))
    compiled = fill(tmp_path / "compiled", {"a.so": os.urandom(10_000)})
    where = tmp_path / "store"
    limit = 35_000  # three of a good ten thousand bytes
    for number in range(3):
        assert CompileCache(where, key(number), folder=compiled, limit_bytes=limit).save().saved
    assert CompileCache(where, key(0), folder=tmp_path / "one", limit_bytes=limit).load().hit
    saved = CompileCache(where, key(3), folder=compiled, limit_bytes=limit).save()
    assert saved.reason == f"removed for room: {key(1).digest}"
    left = {path.stem for path in where.glob("*.ettcache")}
    assert left == {key(number).digest for number in (0, 2, 3)}
    assert {path.stem for path in where.glob("*.used")} == left
    assert sum(path.stat().st_size for path in where.glob("*.ettcache")) <= limit
    too_large = CompileCache(where, key(4), folder=compiled, limit_bytes=100).save()
    assert not too_large.saved
    assert "more than the store may hold" in (too_large.reason or "")


def test_what_a_killed_writer_left_is_removed_when_it_is_old(tmp_path: Path, store: Path) -> None:
    old, young = store / ".x.ettcache.1.part", store / ".y.ettcache.2.part"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    folder = tmp_path / "warm"
    staged = folder / ".ettwatch-dead"
    fill(folder, {".ettwatch-dead/half.so": b"half"})
    os.utime(staged, (1, 1))
    cache = CompileCache(store, KEY, folder=folder)
    assert cache.load().hit
    assert content(folder) == KEPT
    fill(folder, {"new.so": b"new"})
    assert cache.save().saved
    assert young.exists()
    assert not old.exists()


def test_any_store_that_fsspec_opens_will_do(tmp_path: Path) -> None:
    url = "memory://caches/jobs"
    try:
        compiled = fill(tmp_path / "compiled", FILES)
        assert CompileCache(url, KEY, folder=compiled).load().reason == "the store is empty"
        assert CompileCache(url, KEY, folder=compiled).save().saved
        assert CompileCache(url, KEY, folder=tmp_path / "one").load().hit
        assert content(tmp_path / "one") == KEPT
        names = [path.rpartition("/")[2] for path in fsspec.filesystem("memory").ls("/caches/jobs", detail=False)]
        assert sorted(names) == [f"{KEY.digest}.ettcache", f"{KEY.digest}.used"]
        small = CompileCache(url, OTHER, folder=compiled, limit_bytes=500).save()
        assert small.reason == f"removed for room: {KEY.digest}"
    finally:
        fsspec.filesystem("memory").store.clear()


class Small(torch.nn.Module):
    def __init__(self, width: int = 4, rate: float = 0.1) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, width)
        self.drop = torch.nn.Dropout(rate)


@dataclasses.dataclass
class Config:
    width: int
    out: Path


def test_the_key_is_the_same_for_the_same_and_another_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    base = CacheKey.of(model=Small(), config=Config(4, Path("a")))
    assert base == CacheKey.of(model=Small(), config=Config(4, Path("a")))
    others = [
        CacheKey.of(model=Small(5), config=Config(4, Path("a"))),
        CacheKey.of(model=Small(rate=0.2), config=Config(4, Path("a"))),
        CacheKey.of(model=Small().double(), config=Config(4, Path("a"))),
        CacheKey.of(model=Small(), config=Config(5, Path("a"))),
        CacheKey.of(model=Small()),
        CacheKey.of(config=Config(4, Path("a"))),
    ]
    with torch._inductor.config.patch(max_autotune=True):
        others.append(CacheKey.of(model=Small(), config=Config(4, Path("a"))))
    with monkeypatch.context() as changed:
        changed.setenv("TORCHINDUCTOR_FREEZING", "1")
        others.append(CacheKey.of(model=Small(), config=Config(4, Path("a"))))
    with monkeypatch.context() as changed:
        changed.setattr(torch, "__version__", "2.99.0")
        others.append(CacheKey.of(model=Small(), config=Config(4, Path("a"))))
    with monkeypatch.context() as changed:
        changed.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX9")
        key_module._cpu.cache_clear()
        others.append(CacheKey.of(model=Small(), config=Config(4, Path("a"))))
        key_module._cpu.cache_clear()
    digests = {key.digest for key in [base, *others]}
    assert len(digests) == len(others) + 1
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/elsewhere")
    assert base == CacheKey.of(model=Small(), config=Config(4, Path("a")))


def test_addresses_in_memory_do_not_enter_the_key() -> None:
    assert CacheKey.of(config={"hook": object()}) == CacheKey.of(config={"hook": object()})


def test_files_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder/file"
    writing.write_whole(path, b"one")
    with monkeypatch.context() as full:
        full.setattr(os, "replace", fails_with(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space left"):
            writing.write_whole(path, b"two")
    assert content(tmp_path) == {"folder/file": b"one"}
