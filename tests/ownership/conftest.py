"""A ClickHouse for the tests of this area."""

from collections.abc import Iterator

import pytest

from ettwatch_clickhouse import EmbeddedStore, migrate, open_embedded


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    store = open_embedded(tmp_path_factory.mktemp("engine") / "clickhouse")
    try:
        migrate(store)
        yield store
    finally:
        store.close()


@pytest.fixture
def store(engine: EmbeddedStore) -> EmbeddedStore:
    engine.command("TRUNCATE TABLE owners_log")
    return engine
