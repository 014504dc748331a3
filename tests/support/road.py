"""The way to a broker, as bad as wanted: a TCP proxy on the loopback that delays, refuses and cuts.

with Road() as road:
    with FarCluster(road) as cluster:    # clients are sent by the road
        road.delay_s = 0.1      # each way: answers come 200 ms late
        road.close()            # nothing listens, and open connections are cut
        road.open()
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Self

from support.kafka import Cluster
from support.ports import free_port


class Road:
    """A proxy in a thread of this process; its port stays the same.

    Attributes:
        delay_s: How long each byte is under way, in each direction.
        address: HOST:PORT, for clients.
        journeys: How many connections were taken.
    """

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.journeys = 0
        self._target: tuple[str, int] | None = None
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._port = free_port()  # while it is closed nobody is given it
        self.open()
        self.address = f"127.0.0.1:{self._port}"

    @property
    def closed(self) -> bool:
        return self._server is None

    def lead_to(self, port: int) -> None:
        self._target = ("127.0.0.1", port)

    def open(self) -> None:
        self._do(self._listen())

    def close(self) -> None:
        """Take no more connections, and cut those that there are."""
        self._do(self._shut())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._do(self._settle())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self._port)

    async def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()

    async def _settle(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.journeys += 1
        self._open.add(writer)
        try:
            if self._target is None:
                return
            there, back = await asyncio.open_connection(*self._target)
            self._open.add(back)
            try:
                await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
            finally:
                self._open.discard(back)
                back.close()
        except OSError:
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def fetch() -> None:
            data = b"-"
            while data:
                data = await source.read(65_536)
                queue.put_nowait((self._loop.time() + self.delay_s, data))

        async def hand_on() -> None:
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(due - self._loop.time(), 0))
                if not data:
                    break
                sink.write(data)
                await sink.drain()
            with contextlib.suppress(OSError, RuntimeError):
                sink.write_eof()

        await _first_error(fetch, hand_on)


async def _first_error(*works: Callable[[], Awaitable[None]]) -> None:
    await asyncio.gather(*(work() for work in works))


class FarCluster(Cluster):
    """A broker that sends its clients by a road."""

    def __init__(self, road: Road) -> None:
        self._road = road
        super().__init__(properties={"advertised.listeners": f"OPEN://{road.address},GUARDED://{_NOWHERE}"})

    def _wait(self, i: int) -> None:
        self._road.lead_to(self._open[i])
        super()._wait(i)


_NOWHERE = "127.0.0.1:9"
