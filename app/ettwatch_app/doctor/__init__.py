"""What is installed, reachable and misconfigured: the checks behind `ettwatch doctor`."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime

from ettwatch_app import datafolder
from ettwatch_app.doctor.clickhouse import check_clickhouse
from ettwatch_app.doctor.environment import check_clock, check_owners, check_variables, known_variables
from ettwatch_app.doctor.finding import Finding
from ettwatch_app.doctor.folders import check_data, check_spools, check_up
from ettwatch_app.doctor.installed import check_installed
from ettwatch_app.doctor.kafka import check_kafka

__all__ = ["Finding", "examine", "known_variables"]


def examine(data: str | os.PathLike[str] | None) -> Iterator[Finding]:
    """Run all checks on the data folder `data` (None: as the other commands find it)."""
    folder = datafolder.locate(data)
    alive = datafolder.living_up(folder)
    yield from check_installed()
    yield from check_variables(os.environ)
    yield from check_clock(datetime.now(UTC))
    yield from check_data(folder)
    yield from check_up(folder)
    spools = datafolder.spools(folder)
    yield from check_spools(spools, followed=alive is not None and set(map(str, spools)) <= set(alive.spools))
    yield from check_owners(folder.owners)
    yield from check_kafka(os.environ)
    yield from check_clickhouse(os.environ)
