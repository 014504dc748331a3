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
from ettwatch.clock import Clock
from ettwatch.identity import BadIdentity, Given, Identity, from_env, resolve
from ettwatch.identity import requeues as identity_requeues
from ettwatch.injection import injected
from ettwatch.log import trouble, warn
from ettwatch.names import CAUSES
from ettwatch.outbox import Outbox
from ettwatch.runfolder import read_note
from ettwatch.settings import Settings, flag, read
from ettwatch.signals import Signals
from ettwatch.supervise import Care, Run, Supervisor
from ettwatch.verdict import CANCELLING, Seen, Verdict, judge
from ettwatch.voice import Voice

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
    care: Care = Care()
    auto: bool = False
    """Whether PyTorch is to be instrumented in what the command starts."""


class Launcher:
    """Runs one plan, in the main thread. Its own failures are warned of; the command runs all the same."""

    def __init__(self, plan: Plan, env: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._plan = plan
        self._env = env
        self._say = say
        self._settings: Settings = read(env, plan.spool)
        self._outbox: Outbox | None = None
        self._voice: Voice | None = None
        self._run_dir = ""
        self._child_env: dict[str, str] = dict(env)
        self._received: list[int] = []

    def run(self) -> int:
        """Run the command to its end and return its exit code, 128 + n if signal n ended it."""
        with Signals() as signals:  # from here on: what has been told of must also be told the end of
            try:
                trigger = self._open()
            except Exception as error:
                trouble("ettwatch run", error)
                self._outbox, self._voice, trigger = None, None, None
            try:
                return self._attempts(signals, trigger)
            finally:
                if self._outbox is not None:
                    self._outbox.close(self._settings.exit_s)
                if self._run_dir:
                    shutil.rmtree(self._run_dir, ignore_errors=True)

    def _open(self) -> str | None:
        """Find out for whom to speak; return the first attempt's trigger. Speaks for nobody where another does."""
        env, plan, settings = self._env, self._plan, self._settings
        if settings.disabled:
            return None
        if plan.auto:
            self._child_env |= injected(env)
        if flag(env, "ETTWATCH_LAUNCHER"):
            if plan.given.job in (None, env.get("ETTWATCH_JOB")):
                return None  # an outer launcher speaks for this job
            not_ours = ("ETTWATCH_LAUNCHER", "ETTWATCH_ATTEMPT")
            env = {name: value for name, value in env.items() if name not in not_ours}
        speaks = next(filter(None, (env.get(name) for name in ("ETTWATCH_RANK", "RANK", "SLURM_PROCID"))), "0") == "0"
        try:
            identity = resolve(plan.given._replace(rank=0), env)
            told = plan.given.attempt is not None or from_env(env, "ETTWATCH_ATTEMPT") is not None
            requeues = identity_requeues(env)
        except BadIdentity as error:
            warn("identity", f"{error}; nothing is recorded")
            return None
        trigger: str | None = None if identity.attempt else "initial"
        if not told:
            identity, trigger = self._number(identity, requeues * (plan.max_restarts + 1), speaks)
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
        self._voice = Voice(identity, self._outbox, self._run_dir)
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
        voice = self._voice
        if voice is not None:
            voice.started(trigger)
        self._received.clear()
        run = self._run_command(signals)
        if voice is None:
            return judge(Seen(run.exit_code, run.signal, run.received), self._plan.preempt_signals, "unknown")
        latest = voice.follow()
        seen = Seen(
            run.exit_code,
            run.signal,
            run.received,
            oom_killed=voice.was_out_of_memory(),
            failed=read_note(self._run_dir, "failed", latest),
            ended=read_note(self._run_dir, "ended", latest),
            said=run.said,
            hung=run.hung,
        )
        verdict = judge(seen, self._plan.preempt_signals, self._preempt_cause())
        voice.ended(verdict)
        if self._outbox is not None and voice.identity.named:
            with suppress(OSError):
                book.conclude(self._settings.spool, voice.identity.job, latest, verdict.outcome)
        return verdict

    def _run_command(self, signals: Signals) -> Run:
        command = self._plan.command
        if shutil.which(command[0]) is None:
            found = os.path.exists(command[0]) and os.sep in command[0]
            self._say(f"{command[0]}: {'cannot be run: no executable file' if found else 'command not found'}")
            return Run(126 if found else 127, None, [])
        if self._voice is not None:
            # A rank adds the restarts that torchelastic tells it of: those that are counted already are taken off.
            who = self._voice.identity
            self._child_env["ETTWATCH_ATTEMPT"] = str(max(who.attempt - who.elastic_restart, 0))
        ending = frozenset(CANCELLING) | self._plan.preempt_signals
        care, every_s = self._plan.care, self._settings.report_every_s
        if care.patience.hang_after_s is not None and care.patience.hang_after_s < every_s:
            # Between two reports nobody sees whether the position moves.
            self._say(f"--hang-after is less than ETTWATCH_REPORT_EVERY_S; {every_s:g} s are used")
            care = care._replace(patience=care.patience._replace(hang_after_s=every_s))
        supervisor = Supervisor(care, self._settings.heartbeat_every_s, ending, self._voice, self._say)
        try:
            return supervisor.run(command, self._child_env, self._run_dir, signals, self._note_signal)
        except OSError as error:
            self._say(f"{command[0]}: cannot be run: {error}")
            return Run(126, None, [])

    def _note_signal(self, number: int) -> None:
        first = number not in self._received
        self._received.append(number)
        if first and number in self._plan.preempt_signals and self._voice is not None:
            # Told at once: a scheduler that does not wait kills the launcher too. Told again at the end, which counts.
            self._voice.follow()
            self._voice.ended(Verdict("preempted", self._preempt_cause()))

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
        if self._voice is None:
            return
        who = self._voice.identity
        following = who.attempt + 1
        if self._outbox is not None and who.named:
            with suppress(OSError):
                following = book.claim(self._settings.spool, who.job, following).attempt
        self._voice.identity = who._replace(attempt=following)

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
