"""Brokers for the runs of the whole pipeline, started once in each test process."""

import itertools
import os
from collections.abc import Iterator

import pytest

from support.kafka import Cluster

_numbers = itertools.count()


@pytest.fixture(scope="session")
def one() -> Iterator[Cluster]:
    """One broker, which tests may end and start again; they leave it running."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def three() -> Iterator[Cluster]:
    """Three brokers, for the test that ends one of them."""
    with Cluster(brokers=3) as cluster:
        yield cluster


@pytest.fixture
def prefix() -> str:
    """What the names of topics begin with that no other test has."""
    return f"pipeline-{os.getpid()}-{next(_numbers)}"
