"""The watcher of a Slurm cluster: asks `sacct` (or `scontrol`, where there is no accounting) every so often.

It needs no more rights than to run these commands and to see the jobs of all users (`AdminLevel=Operator`, or a cluster
without `PrivateData=jobs`). Times are asked for as seconds since the epoch, so that no zone and no clock change
matters.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ettwatch_sources.feed import Feed, Options
from ettwatch_sources.slurm.reader import records, tell_group
from ettwatch_sources.slurm.record import FIELDS, Record
from ettwatch_sources.slurm.tell import Ids
from ettwatch_sources.told import Told
from ettwatch_sources.watch.loop import PollError

Run = Callable[[Sequence[str], Mapping[str, str]], bytes]
"""Runs a command with an environment and returns what it printed. Raises PollError."""

_OVERLAP_S: Final = 600
_TIMEOUT_S: Final = 300
_LET_GO_US: Final = 86_400_000_000
_ENVIRONMENT: Final = {"SLURM_TIME_FORMAT": "%s", "TZ": "UTC", "LC_ALL": "C"}


def run_command(command: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """Run a command of Slurm. Raises PollError where it is not there, fails or takes too long."""
    try:
        done = subprocess.run(
            list(command),
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise PollError(f"{command[0]} is not there; run the watcher where Slurm's commands are") from None
    except subprocess.TimeoutExpired:
        raise PollError(f"{command[0]} took longer than {_TIMEOUT_S} s; ask for less: --since, --partition") from None
    except OSError as error:
        raise PollError(f"{command[0]} cannot be run: {error.strerror}; give this user the right to") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = said[-1][:300] if said else "it said nothing"
        do = "; where there is no accounting, ask with --via scontrol" if command[0].endswith("sacct") else ""
        raise PollError(f"{command[0]} failed ({done.returncode}): {why}{do}")
    return done.stdout


class SlurmPoller:
    """Asks one cluster.

    Args:
        cluster: Its name; else what each record says.
        since: Before the first poll: from when on (µs) jobs are asked for.
        via: `sacct` or `scontrol`.
        partitions: Only these; none: all.
        steps: Also ask for steps: they say that a job was out of memory where the job itself does not.
        run: Runs commands.
        say: Takes a line for people.
    """

    def __init__(
        self,
        cluster: str | None,
        since: int,
        *,
        via: str = "sacct",
        partitions: Sequence[str] = (),
        steps: bool = False,
        run: Run = run_command,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._cluster = cluster
        self._since = since
        self._via = via
        self._partitions = tuple(partitions)
        self._steps = steps
        self._run = run
        self._say = say
        self._ids = Ids()
        self._fields: tuple[str, ...] = ()
        self.read = self.refused = 0

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a cursor. Raises TypeError and ValueError where it is none."""
        if state:
            self._since = int(state["since"])
            self._ids.load(state["ids"])

    def dump(self) -> dict[str, Any]:
        """Return the state for the cursor file."""
        return {"since": self._since, "ids": self._ids.dump()}

    def poll(self, now: int) -> Iterator[Told]:
        """Yield what is new. Raises PollError."""
        data = self._run(self._command(now), _ENVIRONMENT)
        feed = Feed(self._via, [data], Options(cluster=self._cluster))
        groups: dict[str, list[Record]] = {}
        for record in records(feed):
            self.read += 1
            if not self._partitions or record.partition in self._partitions:
                groups.setdefault(f"{record.cluster}/{record.job_id}", []).append(record)
        for group in groups.values():
            yield from tell_group(feed, group, self._ids)
        for refusal in feed.doubts.refused:
            self._say(f"{self._via}: line {refusal.line}: {refusal.reason}")
        refused = feed.doubts.refusals.total()
        self.refused += refused
        if refused > len(feed.doubts.refused):
            self._say(f"{self._via}: {refused - len(feed.doubts.refused):,} more lines are refused")
        for word in feed.doubts.words:
            self._say(f"{self._via}: {word} is not known here; it is kept as it stands")
        # The next poll begins a little before this one: records reach the database late.
        self._since = max(self._since, now - _OVERLAP_S * 1_000_000)
        self._ids.let_go(self._since - _LET_GO_US)

    def _command(self, now: int) -> list[str]:
        if self._via == "scontrol":
            return ["scontrol", "--oneliner", "show", "job"]
        if not self._fields:
            told = self._run(["sacct", "--helpformat"], _ENVIRONMENT).decode("utf-8", "replace").split()
            self._fields = tuple(name for name in FIELDS if name in told)
            if "JobID" not in self._fields or "State" not in self._fields:
                raise PollError("sacct --helpformat names no JobID and State; is this Slurm's sacct?")
        command = ["sacct", "--allusers", "--duplicates", "--parsable2", "--noconvert"]
        if not self._steps:
            command.append("--allocations")
        if self._cluster:
            command.append(f"--clusters={self._cluster}")
        command += [f"--starttime=uts{self._since // 1_000_000}", f"--endtime=uts{now // 1_000_000}"]
        return [*command, f"--format={','.join(self._fields)}"]
