"""The ClickHouse of a pipeline: the embedded engine over HTTP in a process of its own, behind a proxy that can fail."""

import subprocess
import sys
from pathlib import Path
from typing import Final, Self

from ettwatch_clickhouse import Store, connect
from support.flaky import Flaky
from support.kafka_native import Reaper
from support.pipeline_programs import ProgramError

__all__ = ["House"]

_SERVER: Final = """
import sys
from pathlib import Path
from ettwatch_clickhouse import open_embedded, serve
store = open_embedded(Path(sys.argv[1]))
front = serve(store)
print(front.url, flush=True)
sys.stdin.read()
front.close()
store.close()
"""


class House:
    """It can be killed and started again on the same folder; the address stays. A context manager.

    Attributes:
        flaky: The proxy that its clients talk to.
        url: The address of the database, by the proxy.
    """

    def __init__(self, folder: Path, reaper: Reaper) -> None:
        self._folder = folder / "clickhouse"
        self._log = folder / "clickhouse.log"
        self._reaper = reaper
        self._process: subprocess.Popen[str] | None = None
        self.flaky = Flaky("127.0.0.1:9")
        self.url = f"{self.flaky.url}/ettwatch"
        self.start()

    def start(self) -> None:
        """Start it, with the data it had."""
        assert self._process is None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVER, str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._reaper.watch(self._process.pid)
        assert self._process.stdout is not None
        url = self._process.stdout.readline().strip()
        if not url:
            raise ProgramError(f"ClickHouse did not start\n{self._log.read_text()[-2000:]}")
        self.flaky.backend = url.removeprefix("http://")
        self._direct = f"{url}/ettwatch"

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
            self._reaper.forget(process.pid)

    def store(self) -> Store:
        """Return a store that goes past the proxy; to be closed."""
        return connect(self._direct)

    def close(self) -> None:
        """End it, and the proxy."""
        self.kill()
        self.flaky.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
