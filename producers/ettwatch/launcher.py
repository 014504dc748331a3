"""`ettwatch run`: starts a command, speaks for it as its launcher, and starts it again when asked."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Final, NamedTuple

from ettwatch import book
from ettwatch.cgroup import oom_kills
from ettwatch.child import Child
from ettwatch.clock import Clock
from ettwatch.identity import BadIdentity, Given, Identity, from_env, resolve
from ettwatch.log import trouble, warn
from ettwatch.names import CAUSES
from ettwatch.outbox import Outbox
from ettwatch.runfolder import latest_attempt, read_note
from ettwatch.settings import Settings, flag, read
from ettwatch.signals import Signals
from ettwatch.verdict import CANCELLING, Seen, Verdict, judge

SETTLE_S: Final = 0.2
"""Seconds that a scheduler may need to send to the launcher what it sent to the command."""
LONGEST_BACKOFF_S: Final = 300.0
_TRIGGERS: Final = {"failed": "failure", "preempted": "preemption", "succeeded": "manual", "cancelled": "manual"}


class Plan(NamedTuple):
    """What is to be run and how; times in seconds."""

    command: tuple[str, ...]
    given: Given = Given()
    spool: str | None = None
    max_restarts: int = 0
    backoff_s: float = 1.0
    preempt_signals: frozenset[int] = frozenset({signal.SIGTERM})
    grace_s: float = 10.0


class Launcher:
    """Runs one plan, in the main thread. Its own failures are warned of; the command runs all the same."""

    def __init__(self, plan: Plan, env: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._plan = plan
        self._env = env
        self._say = say
        self._settings: Settings = read(env, plan.spool)
        self._outbox: Outbox | None = None
        self._identity: Identity | None = None
        self._run_dir = ""
        self._child_env: dict[str, str] = dict(env)
        self._received: list[int] = []

    def run(self) -> int:
        """Run the command to its end and return its exit code, 128 + n if signal n ended it."""
        try:
            trigger = self._open()
        except Exception as error:
            trouble("ettwatch run", error)
            self._outbox, self._identity, trigger = None, None, None
        try:
            with Signals() as signals:
                return self._attempts(signals, trigger)
        finally:
            if self._outbox is not None:
                self._outbox.close(budget_s=2.0)
            if self._run_dir:
                shutil.rmtree(self._run_dir, ignore_errors=True)

    def _open(self) -> str | None:
        """Find out for whom to speak; return the first attempt's trigger. Speaks for nobody where another does."""
        env, plan, settings = self._env, self._plan, self._settings
        if settings.disabled:
            return None
        if flag(env, "ETTWATCH_LAUNCHER"):
            if plan.given.job in (None, env.get("ETTWATCH_JOB")):
                return None  # an outer launcher speaks for this job
            not_ours = ("ETTWATCH_LAUNCHER", "ETTWATCH_ATTEMPT")
            env = {name: value for name, value in env.items() if name not in not_ours}
        speaks = next(filter(None, (env.get(name) for name in ("ETTWATCH_RANK", "RANK", "SLURM_PROCID"))), "0") == "0"
        try:
            identity = resolve(plan.given._replace(rank=0), env)
            told = plan.given.attempt is not None or from_env(env, "ETTWATCH_ATTEMPT") is not None
            requeues = from_env(env, "SLURM_RESTART_COUNT") or 0
        except BadIdentity as error:
            warn("identity", f"{error}; nothing is recorded")
            return None
        trigger: str | None = None if identity.attempt else "initial"
        if not told:
            identity, trigger = self._number(identity, requeues * (plan.max_restarts + 1), speaks)
        self._identity = identity
        try:
            self._run_dir = tempfile.mkdtemp(prefix="ettwatch-run-")
        except OSError as error:
            trouble("making a folder for word from the ranks", error)
        clock = Clock.take_over(env.get("ETTWATCH_CLOCK"))
        if speaks:  # of several launchers, one on each node, the first speaks
            self._outbox = Outbox(identity, settings, clock, "launcher")
            self._outbox.send(
                "job_submitted",
                team=identity.team,
                model=identity.model,
                cluster=identity.cluster,
                gpus=identity.gpus,
                labels=identity.labels,
            )
        self._child_env |= _handed_down(identity, settings, self._run_dir, clock)
        return trigger

    def _number(self, identity: Identity, least: int, speaks: bool) -> tuple[Identity, str | None]:
        """Take the attempt's number from the book of the spool folder."""
        least = max(least, identity.attempt)
        if not speaks or not identity.named:
            return identity._replace(attempt=least), None if least else "initial"
        try:
            claim = book.claim(self._settings.spool, identity.job, least)
        except OSError as error:
            trouble(f"keeping the numbers of attempts in {self._settings.spool}", error)
            return identity._replace(attempt=least), None if least else "initial"
        if claim.last_outcome in ("succeeded", "cancelled"):
            self._say(f"job {identity.job!r} has ended before ({claim.last_outcome}); this is attempt {claim.attempt}")
        trigger = _TRIGGERS[claim.last_outcome or "failed"] if claim.known else None if claim.attempt else "initial"
        return identity._replace(attempt=claim.attempt), trigger

    def _attempts(self, signals: Signals, trigger: str | None) -> int:
        restarts = 0
        while True:
            verdict = self._attempt(signals, trigger)
            if verdict.outcome != "failed" or verdict.exit_code in (126, 127) or restarts >= self._plan.max_restarts:
                break
            restarts += 1
            delay_s = min(self._plan.backoff_s * 2 ** (restarts - 1), LONGEST_BACKOFF_S)
            self._say(
                f"the command failed ({verdict.cause}{f': {verdict.message}' if verdict.message else ''}); "
                f"restart {restarts} of {self._plan.max_restarts} in {delay_s:g} s"
            )
            if not self._pause(signals, delay_s):
                verdict = verdict._replace(
                    outcome="preempted" if set(self._received) & self._plan.preempt_signals else "cancelled"
                )
                break
            self._take_next()
            trigger = "failure"
        if self._outbox is not None and verdict.outcome != "preempted":
            self._outbox.send("job_ended", outcome=verdict.outcome)
        return verdict.exit_code if verdict.exit_code is not None else 128 + (verdict.signal or 0)

    def _attempt(self, signals: Signals, trigger: str | None) -> Verdict:
        outbox, identity = self._outbox, self._identity
        if outbox is not None and identity is not None:
            outbox.speak_as(identity)
            outbox.send("attempt_started", gpus=identity.gpus, trigger=trigger)
        kills = oom_kills()
        self._received.clear()
        exit_code, killed_by = self._run_command(signals)
        if identity is None:
            return judge(Seen(exit_code, killed_by, self._received), self._plan.preempt_signals, "unknown")
        latest = latest_attempt(self._run_dir, identity.attempt)
        self._identity = identity = identity._replace(attempt=latest)
        kills_after = oom_kills()
        seen = Seen(
            exit_code,
            killed_by,
            self._received,
            oom_killed=kills is not None and kills_after is not None and kills_after > kills,
            failed=read_note(self._run_dir, "failed", latest),
            ended=read_note(self._run_dir, "ended", latest),
        )
        verdict = judge(seen, self._plan.preempt_signals, self._preempt_cause())
        if outbox is not None:
            outbox.speak_as(identity)
            outbox.send("attempt_ended", **verdict._asdict())
            if identity.named:
                with suppress(OSError):
                    book.conclude(self._settings.spool, identity.job, latest, verdict.outcome)
        return verdict

    def _run_command(self, signals: Signals) -> tuple[int | None, int | None]:
        command = self._plan.command
        if shutil.which(command[0]) is None:
            found = os.path.exists(command[0]) and os.sep in command[0]
            self._say(f"{command[0]}: {'cannot be run: no executable file' if found else 'command not found'}")
            return (126 if found else 127), None
        if self._identity is not None:
            # A rank adds the restarts that torchelastic tells it of: those that are counted already are taken off.
            attempt = max(self._identity.attempt - self._identity.elastic_restart, 0)
            self._child_env["ETTWATCH_ATTEMPT"] = str(attempt)
        try:
            child = Child(command, self._child_env)
        except OSError as error:
            self._say(f"{command[0]}: cannot be run: {error}")
            return 126, None
        beat_at = monotonic() + self._settings.heartbeat_every_s
        while not child.has_ended():
            signals.wait(beat_at - monotonic())
            while signals.queue:
                number = signals.queue.popleft()
                child.send(number)
                self._note_signal(number)
            if monotonic() >= beat_at:
                self._heartbeat()
                beat_at = monotonic() + self._settings.heartbeat_every_s
        code, killed_by = child.end(self._plan.grace_s)
        if not signals.queue and (killed_by in CANCELLING or (code or 0) - 128 in CANCELLING):
            signals.wait(SETTLE_S)
        self._received.extend(signals.queue)
        signals.queue.clear()
        return code, killed_by

    def _note_signal(self, number: int) -> None:
        first = number not in self._received
        self._received.append(number)
        if first and number in self._plan.preempt_signals and self._outbox is not None:
            # Told at once: a scheduler that does not wait kills the launcher too. Told again at the end, which counts.
            self._follow_ranks()
            self._outbox.send("attempt_ended", outcome="preempted", cause=self._preempt_cause())

    def _follow_ranks(self) -> None:
        """Speak for the attempt that the ranks have come to: torchelastic may have restarted them."""
        if self._outbox is not None and self._identity is not None:
            latest = latest_attempt(self._run_dir, self._identity.attempt)
            self._outbox.speak_as(self._identity._replace(attempt=latest))

    def _heartbeat(self) -> None:
        self._follow_ranks()
        if self._outbox is not None:
            self._outbox.retry()
            self._outbox.send("heartbeat")

    def _pause(self, signals: Signals, delay_s: float) -> bool:
        """Wait before a restart; False if a signal said that there is to be none."""
        until = monotonic() + delay_s
        ending = {*CANCELLING, *self._plan.preempt_signals}
        self._received.clear()
        while (left := until - monotonic()) > 0 or signals.queue:
            signals.wait(left)
            while signals.queue:
                self._received.append(signals.queue.popleft())
            if ending & set(self._received):
                return False
        return True

    def _take_next(self) -> None:
        if self._identity is None:
            return
        following = self._identity.attempt + 1
        if self._outbox is not None and self._identity.named:
            with suppress(OSError):
                following = book.claim(self._settings.spool, self._identity.job, following).attempt
        self._identity = self._identity._replace(attempt=following)

    def _preempt_cause(self) -> str:
        """Return why the scheduler ended the attempt, as far as can be known."""
        end = self._env.get("SLURM_JOB_END_TIME", "")
        if end.isdecimal() and time.time() >= int(end) - 60:
            return "timeout"
        cause = self._env.get("ETTWATCH_PREEMPT_CAUSE") or "unknown"
        if cause in CAUSES:
            return cause
        warn("setting:ETTWATCH_PREEMPT_CAUSE", f"ETTWATCH_PREEMPT_CAUSE={cause!r} is none of {', '.join(CAUSES)}")
        return "unknown"


def _handed_down(identity: Identity, settings: Settings, run_dir: str, clock: Clock) -> dict[str, str]:
    told = {
        "ETTWATCH_LAUNCHER": "1",
        "ETTWATCH_JOB": identity.job,
        "ETTWATCH_SPOOL": settings.spool,
        "ETTWATCH_RUN_DIR": run_dir or None,
        "ETTWATCH_CLOCK": clock.hand_down(),
        "ETTWATCH_TEAM": identity.team,
        "ETTWATCH_MODEL": identity.model,
        "ETTWATCH_CLUSTER": identity.cluster,
        "ETTWATCH_GPUS": None if identity.gpus is None else str(identity.gpus),
    }
    return {name: value for name, value in told.items() if value is not None}
