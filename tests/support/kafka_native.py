"""Kafka brokers from Kafka's own jars: one Java process each."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from support.kafka_jars import KafkaUnavailable, jars, java

_STOP_S: Final = 40
_FORMAT_S: Final = 120
_HEAP: Final = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

# Reads the ids of process groups, one a line, `-` before those that are over, until the test run is gone, however it
# went; then ends what is left.
_WATCH: Final = """
import os, shutil, signal, sys, time
alive = set()
for line in sys.stdin:
    group = line.strip()
    if group.startswith("-"):
        alive.discard(group[1:])
    else:
        alive.add(group)
for group in alive:
    try:
        os.killpg(int(group), signal.SIGKILL)
    except OSError:
        pass
for _ in range(300):  # what dies may have made one more file
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.1)
"""


class Reaper:
    """A process that outlives the test run by a moment, to end what that left behind.

    It sees the end of a pipe: unlike PR_SET_PDEATHSIG that works from any thread and on any POSIX system.
    """

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _WATCH, str(folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        assert self._process.stdin is not None
        self._pipe = self._process.stdin

    def watch(self, pid: int) -> None:
        """End the process group of `pid` when this process is gone."""
        self._say(f"{pid}")

    def forget(self, pid: int) -> None:
        """Leave it: it is over, and its number may become another's."""
        self._say(f"-{pid}")

    def _say(self, line: str) -> None:
        self._pipe.write(f"{line}\n")
        self._pipe.flush()

    def close(self) -> None:
        """End what is still watched, now, and remove the folder."""
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()
        self._process.wait()


class NativeNode:
    """One broker, with its settings in `folder/server-N.properties` and its log in `folder/server-N.log`."""

    def __init__(self, folder: Path, i: int, reaper: Reaper) -> None:
        self._settings = folder / f"server-{i}.properties"
        self._log = self._settings.with_suffix(".log")
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert self.death() is not None, "the broker runs already"
        command = [*_java(self._log, *_HEAP), "kafka.Kafka", str(self._settings)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._reaper.watch(self._process.pid)

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._over(self._process)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
            else:
                self._over(self._process)

    def _over(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._reaper.forget(process.pid)
        self._process = None

    def close(self) -> None:
        self.kill()

    def death(self) -> str | None:
        if self._process is None:
            return "it was not started"
        code = self._process.poll()
        return None if code is None else f"exit code {code}; {_reason(self._log)}"


def format_storage(folder: Path, cluster: str, settings: Sequence[Mapping[str, str]]) -> None:
    """Write the settings of each broker and prepare its data folder. Raises KafkaUnavailable."""
    running = []
    for i, values in enumerate(settings):
        shutil.rmtree(values["log.dirs"], ignore_errors=True)
        path = folder / f"server-{i}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        log = folder / f"format-{i}.log"
        command = [*_java(log, *_HEAP), "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(path)]
        with log.open("wb") as out:
            running.append((log, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)))
    for log, process in running:
        try:
            code = process.wait(_FORMAT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code != 0:
            raise KafkaUnavailable(f"Kafka cannot prepare its data folder: exit code {code}; {_reason(log)}")


def _java(log: Path, *options: str) -> list[str]:
    logger = [
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
        "-Dlog4j2.level=off",
    ]
    return [java(), *options, *logger, "-cp", f"{jars()}/*"]


def _reason(log: Path) -> str:
    """The line of a log that says most, and the end of the log."""
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").splitlines()
        taken = [line for line in lines if "already in use" in line]
        return (f"{taken[0]} (a port is in use)" if taken else "its log ends with:\n" + "\n".join(lines[-25:]))[:4000]
    return "it left no log"
