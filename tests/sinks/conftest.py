"""The two kinds of store. Each test finds the tables empty; the embedded engine is closed after each module, so that
others may open another folder."""

from collections.abc import Iterator

import pytest

from ettwatch_clickhouse import EmbeddedStore, Store, connect, migrate, open_embedded
from support.clickhouse import empty
from support.clickhouse_server import serving


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    store = open_embedded(tmp_path_factory.mktemp("engine") / "clickhouse")
    try:
        migrate(store)
        yield store
    finally:
        store.close()


@pytest.fixture
def embedded(engine: EmbeddedStore) -> EmbeddedStore:
    empty(engine)
    return engine


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a database on some server."""
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server.database("ettwatch_test")


@pytest.fixture(scope="module")
def connected(server_url: str) -> Iterator[Store]:
    store = connect(server_url)
    try:
        migrate(store)
        yield store
    finally:
        store.close()


@pytest.fixture
def server(connected: Store) -> Store:
    empty(connected)
    return connected


@pytest.fixture(params=["embedded", "server"])
def store(request: pytest.FixtureRequest) -> Store:
    found: Store = request.getfixturevalue(request.param)
    return found
