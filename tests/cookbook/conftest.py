"""One engine with the fleet of the cookbook."""

from collections.abc import Iterator

import pytest

from ettwatch_clickhouse import EmbeddedStore, migrate, open_embedded
from support.fleet import fill


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    store = open_embedded(tmp_path_factory.mktemp("cookbook") / "clickhouse")
    try:
        migrate(store)
        fill(store)
        yield store
    finally:
        store.close()
