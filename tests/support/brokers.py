"""Fixtures of Kafka brokers, started once in each test process: a plugin of tests/conftest.py."""

import gc
import itertools
import os
from collections.abc import Iterator
from typing import cast

import pytest

from support.kafka import Cluster, given

__all__ = ["kafka", "one_cluster", "own", "prefix", "swept", "three", "three_cluster"]

_numbers = itertools.count()


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> str:
    """Addresses of some Kafka; its topics are shared, so take a `prefix`."""
    return given() or cast(Cluster, request.getfixturevalue("one_cluster")).bootstrap


@pytest.fixture(scope="session")
def one_cluster() -> Iterator[Cluster]:
    """What `own` lends."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def three_cluster() -> Iterator[Cluster]:
    """What `three` lends."""
    with Cluster(brokers=3) as cluster:
        yield cluster


@pytest.fixture
def own(one_cluster: Cluster) -> Iterator[Cluster]:
    """One broker of one's own, which tests may end; the next test finds it running."""
    yield one_cluster
    one_cluster.mend()


@pytest.fixture
def three(three_cluster: Cluster) -> Iterator[Cluster]:
    """Three brokers of one's own, which tests may end; the next test finds them running."""
    yield three_cluster
    three_cluster.mend()


@pytest.fixture
def prefix() -> str:
    """What the names of topics begin with that no other test has."""
    return f"test-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def swept() -> Iterator[None]:
    """kafka-python leaves a socket to the garbage collector where it cannot connect: it goes with the test that did."""
    yield
    gc.collect()
