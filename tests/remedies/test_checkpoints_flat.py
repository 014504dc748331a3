"""A nested state taken apart and put together: laws."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_trainer.remedies.checkpoints import CheckpointError
from ettwatch_trainer.remedies.checkpoints.flat import fill, flatten, merge, names, pack, unpack

pytestmark = pytest.mark.torch

TENSORS = st.lists(st.floats(width=32), max_size=4).map(lambda items: torch.tensor(items, dtype=torch.float32))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5) | TENSORS
KEYS = st.text(max_size=4)
NESTED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=12,
)


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one.view(torch.int32), other.view(torch.int32))
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


@given(NESTED)
def test_what_is_taken_apart_comes_together_again(state: Any) -> None:
    tensors: dict[str, torch.Tensor] = {}
    skeleton = flatten(state, "part", tensors)
    assert sorted(names(skeleton)) == sorted(tensors)
    assert equal(fill(unpack(pack(skeleton)), tensors.__getitem__), state)


@given(NESTED)
def test_two_ranks_that_agree_are_as_one(state: Any) -> None:
    skeleton = flatten(state, "part", {})
    assert equal(merge(skeleton, unpack(pack(skeleton)), "part"), skeleton)


def test_what_each_rank_has_is_put_together_and_what_differs_is_refused() -> None:
    assert merge({"a": 1, "b": {"x": 1}}, {"b": {"y": 2}, "a": 1}, "s") == {"a": 1, "b": {"x": 1, "y": 2}}
    with pytest.raises(CheckpointError, match="'s/b/x' differs between the ranks"):
        merge({"b": {"x": 1}}, {"b": {"x": 2}}, "s")


def test_two_tensors_of_one_name_are_refused() -> None:
    with pytest.raises(CheckpointError, match="two tensors of the state would be named 's/1'"):
        flatten({1: torch.zeros(1), "1": torch.ones(1)}, "s", {})


def test_names_that_contain_the_separator_stay_apart() -> None:
    tensors: dict[str, torch.Tensor] = {}
    flatten({"a/b": torch.zeros(1), "a": {"b": torch.ones(1)}, "a%2Fb": torch.ones(1)}, "s", tensors)
    assert len(tensors) == 3


def test_a_key_that_is_no_text_or_number_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"has the key \(1, 2\) at 's'; keys are texts or numbers"):
        flatten({(1, 2): 0}, "s", {})
