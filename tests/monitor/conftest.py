"""One program for all tests of the API: the fleet of the cookbook, two monitors, and ClickHouse's HTTP front."""

from collections.abc import Iterator

import pytest

from support.monitor import Served, served


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("monitor")) as running:
        yield running
