"""What holds for all tests of the worker."""

import asyncio
from collections.abc import Iterator

import pytest
from mode.utils.loops import get_event_loop


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """Faust makes a loop where there is none, and leaves it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    get_event_loop().close()
    asyncio.set_event_loop(None)
    loop.close()
