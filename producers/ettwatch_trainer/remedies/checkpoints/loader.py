"""Reading one checkpoint into a trainer's state, on one rank and without a word to the others."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load as dcp_load

from ettwatch_trainer.remedies.checkpoints import flat
from ettwatch_trainer.remedies.checkpoints import marker as markers
from ettwatch_trainer.remedies.checkpoints.errors import CheckpointError, DamagedError
from ettwatch_trainer.remedies.checkpoints.marker import Marker
from ettwatch_trainer.remedies.checkpoints.named import NamedOptimizer
from ettwatch_trainer.remedies.checkpoints.rng import reseed
from ettwatch_trainer.remedies.checkpoints.state import GENERATORS, LOCAL, Taken, give_back, skeleton_name, take
from ettwatch_trainer.remedies.checkpoints.streams import METADATA, Pace, check, hush, reader


def sound(path: Path, rank: int, world: int, pace: Pace) -> frozenset[Path]:
    """Check a rank's share of the files; those that are whole, or none."""
    try:
        names = share(marker := markers.whole(path), rank, world)
        check(path, marker, names, pace)
    except DamagedError:
        return frozenset()
    return frozenset(path / name for name in names)


def load(
    path: Path,
    state: MutableMapping[str, Any],
    *,
    rank: int,
    world: int,
    rng: bool,
    reshard: bool,
    pace: Pace,
    checked: frozenset[Path] = frozenset(),
) -> Marker:
    """Fill `state` from the checkpoint at `path`. Files that were `checked` before are not checked again.

    Raises DamagedError if it is not whole, and CheckpointError if it does not fit this state or number of ranks; parts
    of `state` may be filled by then.
    """
    marker = markers.whole(path)
    if marker.world != world and not reshard:
        raise CheckpointError(
            f"{path} was saved by {marker.world} ranks and there are {world}; start as many, or allow on_world_change"
            '="reshard"'
        )
    check(path, marker, [name for name in share(marker, rank, world) if path / name not in checked], pace)
    metadata = _metadata(path)
    taken = take(state, rank, rng=rng)
    skeletons = _skeletons(path, metadata, [rank] if marker.world == world else list(range(marker.world)))
    wanted = {key: _wanted(path, key, taken, skeletons, world == marker.world) for key in taken.parts}
    like = _like(taken, wanted)
    tensors = {
        name: _room(path, name, metadata, taken.tensors.get(name), like.get(name))
        for skeleton in wanted.values()
        for name in flat.names(skeleton)
    }
    _read(path, tensors)
    for key, skeleton in wanted.items():
        if key == GENERATORS and marker.world != world:
            reseed(marker.step, rank)
            continue
        try:
            give_back(state, taken, key, flat.fill(skeleton, tensors.__getitem__))
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            words = " ".join(str(error).split())
            raise CheckpointError(f"{path}: {key!r} does not take what was saved: {words}") from error
    return marker


def read_state(path: Path, entry: str | None = None) -> dict[str, Any]:
    """The whole state that a checkpoint holds, of all ranks together, or its part `entry`; for one process alone.

    What was local to a rank is left out. Raises DamagedError, or CheckpointError if there is no such part.
    """
    marker = markers.whole(path)
    check(path, marker, sorted(marker.files), Pace(None))
    metadata = _metadata(path)
    skeletons = _skeletons(path, metadata, list(range(marker.world)))
    local = {name for skeleton in skeletons for name in skeleton[LOCAL]}
    keys = {name for skeleton in skeletons for name in skeleton} - local - {LOCAL}
    if entry is not None and entry not in keys:
        raise CheckpointError(f"{path} has no part {entry!r}; it has {', '.join(sorted(keys))}")
    merged: dict[str, Any] = {}
    for skeleton in skeletons:
        mine = {name: part for name, part in skeleton.items() if name in (keys if entry is None else {entry})}
        merged = flat.merge(merged, mine, "")
    tensors = {name: _room(path, name, metadata, None) for name in flat.names(merged)}
    _read(path, tensors)
    whole = flat.fill(merged, tensors.__getitem__)
    found: dict[str, Any] = whole if entry is None else whole[entry]
    return found


def share(marker: Marker, rank: int, world: int) -> list[str]:
    """The files that this rank checks: dealt out, so that all together check each once."""
    return sorted(marker.files)[rank::world]


def _wanted(path: Path, key: str, taken: Taken, skeletons: list[dict[str, Any]], same: bool) -> Any:
    """The skeleton of a part as this rank is to have it."""
    here = [skeleton[key] for skeleton in skeletons if key in skeleton]
    if not here:
        raise CheckpointError(f"{path} has no {key!r}; load it without that part, or start anew in another folder")
    if same:
        return here[0]
    if key in taken.local:
        if key == GENERATORS:
            return {}
        raise CheckpointError(f"{path}: {key!r} is local to each rank, so only as many ranks as saved it can load it")
    merged = here[0]
    for other in here[1:]:
        merged = flat.merge(merged, other, key)
    part = taken.parts[key]
    if isinstance(part, NamedOptimizer):
        return {about: {name: of for name, of in merged[about].items() if part.wants(name)} for about in merged}
    if isinstance(part, torch.nn.Module):
        mine = taken.skeleton[key]
        return {name: merged[name] for name in mine if name in merged}
    return merged


def _like(taken: Taken, wanted: dict[str, Any]) -> dict[str, torch.Tensor]:
    """For each tensor of an optimizer the parameter that it is of."""
    found: dict[str, torch.Tensor] = {}
    for key, part in taken.parts.items():
        if isinstance(part, NamedOptimizer):
            for name, parameter in part.parameters().items():
                found |= dict.fromkeys(flat.names(wanted[key]["state"].get(name)), parameter)
    return found


def _metadata(path: Path) -> Metadata:
    try:
        return reader(path).read_metadata()
    except Exception as error:  # whatever unpickling damaged bytes comes to
        raise DamagedError(f"{path / METADATA} cannot be read: {error!r}") from error


def _skeletons(path: Path, metadata: Metadata, ranks: list[int]) -> list[dict[str, Any]]:
    packed = {rank: _room(path, skeleton_name(rank), metadata, None) for rank in ranks}
    _read(path, {skeleton_name(rank): tensor for rank, tensor in packed.items()})
    try:
        return [flat.unpack(packed[rank]) for rank in ranks]
    except Exception as error:
        raise DamagedError(f"{path}: what is not tensors cannot be read: {error!r}") from error


def _room(
    path: Path, name: str, metadata: Metadata, there: torch.Tensor | None, like: torch.Tensor | None = None
) -> torch.Tensor:
    """Where a tensor is read to: the trainer's own if it fits, else new, and sharded as `like` is."""
    saved = metadata.state_dict_metadata.get(name)
    if not isinstance(saved, TensorStorageMetadata):
        raise CheckpointError(f"{path} has no tensor {name!r}; the model or the settings have changed")
    if there is None:
        if like is not None and type(like) not in (torch.Tensor, torch.nn.Parameter) and like.size() == saved.size:
            return torch.empty_like(like, dtype=saved.properties.dtype, requires_grad=False)
        return torch.empty(saved.size, dtype=saved.properties.dtype)
    if there.size() != saved.size or there.dtype != saved.properties.dtype:
        raise CheckpointError(
            f"{path}: {name!r} is {saved.properties.dtype} {tuple(saved.size)} there and "
            f"{there.dtype} {tuple(there.size())} here; the model or the settings have changed"
        )
    return there


def _read(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    if not tensors:
        return
    hush()
    try:
        dcp_load(
            dict(tensors),
            storage_reader=reader(path),
            planner=DefaultLoadPlanner(flatten_state_dict=False),
            no_dist=True,
        )
    except (Exception, CheckpointException) as error:  # the latter is no Exception
        raise DamagedError(f"{path} cannot be read: {error!r}") from error
