"""Every environment variable of the recorder and the launcher, and how each is read."""

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from ettwatch.log import warn


class Variable(NamedTuple):
    """One environment variable: its name, what holds where it is not set, what it means."""

    name: str
    default: str
    meaning: str


VARIABLES: Final = (
    Variable("ETTWATCH_DISABLED", "0", "1: record nothing, write nothing, run the command only"),
    Variable("ETTWATCH_JOB", "see identity", "the job"),
    Variable("ETTWATCH_ATTEMPT", "see identity", "the attempt, a whole number from 0"),
    Variable("ETTWATCH_RANK", "see identity", "the rank of this process"),
    Variable("ETTWATCH_SUBMITTED", "none", "when the job was submitted, where its scheduler gives ids again"),
    Variable("ETTWATCH_PODINFO", "/etc/podinfo", "folder with the pod's labels, from the downward API of Kubernetes"),
    Variable("ETTWATCH_TEAM", "none", "the team whose job it is"),
    Variable("ETTWATCH_MODEL", "none", "the model that is trained"),
    Variable("ETTWATCH_CLUSTER", "see identity", "the cluster that it runs on"),
    Variable("ETTWATCH_GPUS", "see identity", "how many GPUs the attempt holds"),
    Variable("ETTWATCH_LABELS", "none", "free labels: `name=value,name=value`"),
    Variable("ETTWATCH_SPOOL", "$ETTWATCH_DATA/spool", "the folder that event files are written to"),
    Variable("ETTWATCH_DATA", "./.ettwatch", "the data folder; its sub-folder `spool` is used if no spool is given"),
    Variable("ETTWATCH_FSYNC", "0", "1: wait until the disk has each event (slow); 0: until the kernel has it"),
    Variable("ETTWATCH_SPOOL_MB", "512", "MB that events on their way to Kafka may take in the spool folder of a host"),
    Variable("ETTWATCH_EXIT_S", "2", "seconds that the end of a process may wait for the disk and the brokers"),
    Variable("ETTWATCH_QUEUE_EVENTS", "10000", "events kept in memory while the spool folder cannot be written"),
    Variable("ETTWATCH_REPORT_EVERY_S", "30", "longest silence of the loop, in s; progress goes out in a third of it"),
    Variable("ETTWATCH_HEARTBEAT_EVERY_S", "60", "seconds between signs of life outside the loop"),
    Variable("ETTWATCH_PROGRESS_RANKS", "0", "which ranks speak for the loop: `0`, or `all`"),
    Variable("ETTWATCH_KAFKA", "none", "Kafka brokers, HOST:PORT with commas between them; none: files only"),
    Variable("ETTWATCH_KAFKA_SECURITY", "`PLAINTEXT`; with a user `SASL_SSL`", "how brokers are spoken to"),
    Variable("ETTWATCH_KAFKA_CA", "those of the system", "file with the certificates that sign those of the brokers"),
    Variable("ETTWATCH_KAFKA_MECHANISM", "PLAIN", "how to log in: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
    Variable("ETTWATCH_KAFKA_USER", "none", "user to log in as"),
    Variable("ETTWATCH_KAFKA_PASSWORD", "none", "password of that user"),
    Variable("ETTWATCH_KAFKA_PASSWORD_FILE", "none", "file with the password, instead of it"),
    Variable("ETTWATCH_TOPIC_PREFIX", "ett", "what the name of the topic begins with: `ett` means `ett.events`"),
    Variable("ETTWATCH_PREEMPT_CAUSE", "unknown", "cause of attempts that the scheduler ends, where the site knows it"),
    Variable("ETTWATCH_AUTO_OFF", "none", "hooks of `--auto` that are not wanted, with commas between them"),
    Variable("ETTWATCH_AUTO", "set by `ettwatch run`", "1: PyTorch is instrumented by hooks"),
    Variable("ETTWATCH_AUTO_PID", "set by the hooks", "the process that is recorded; what it starts are its helpers"),
    Variable("ETTWATCH_AUTO_SAID", "set by the hooks", "1: what they could not do was said"),
    Variable("ETTWATCH_LAUNCHER", "set by `ettwatch run`", "1: a launcher tells the start and the end of the job"),
    Variable("ETTWATCH_RUN_DIR", "set by `ettwatch run`", "folder in which ranks leave word for their launcher"),
    Variable("ETTWATCH_CLOCK", "set by `ettwatch run`", "the launcher's clock, used on the same machine"),
)  # fmt: skip


class Brokers:
    """What the environment says of the brokers: read by the thread that speaks to them, and never shown."""

    __slots__ = ("env", "topic")

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = {name: value for name, value in env.items() if name.startswith("ETTWATCH_KAFKA")}
        self.topic = f"{env.get('ETTWATCH_TOPIC_PREFIX', '').strip() or 'ett'}.events"

    def __repr__(self) -> str:
        return f"Brokers({self.env.get('ETTWATCH_KAFKA')!r})"


class Settings(NamedTuple):
    """How to record, not what: every value is within its limits."""

    disabled: bool
    spool: str
    fsync: bool
    queue_events: int
    report_every_s: float
    heartbeat_every_s: float
    progress_all: bool
    exit_s: float
    spool_bytes: int
    brokers: Brokers | None
    """Where events are sent to; None: they stay in files."""


def _refuse(name: str, text: str, wanted: str, used: str) -> None:
    warn(f"setting:{name}", f"{name}={text!r} is not {wanted}; {used} is used")


def flag(env: Mapping[str, str], name: str) -> bool:
    """Read a switch: 1, true, yes, on or 0, false, no, off; anything else is off, with a warning."""
    text = env.get(name, "").strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text not in ("", "0", "false", "no", "off"):
        _refuse(name, text, "1 or 0", "0")
    return False


def _number(env: Mapping[str, str], name: str, default: float, low: float, high: float) -> float:
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if low <= value <= high:
        return value
    _refuse(name, text, f"a number between {low:g} and {high:g}", f"{default:g}")
    return default


def spool_folder(env: Mapping[str, str], given: str | os.PathLike[str] | None = None) -> str:
    """Return the spool folder as an absolute path: as given, else by ETTWATCH_SPOOL, else by ETTWATCH_DATA."""
    folder = os.fspath(given) if given is not None else env.get("ETTWATCH_SPOOL") or ""
    return os.path.abspath(folder or os.path.join(env.get("ETTWATCH_DATA") or ".ettwatch", "spool"))


def read(env: Mapping[str, str], spool: str | os.PathLike[str] | None = None) -> Settings:
    """Read the settings. One that is malformed is warned of, and its default is used."""
    ranks = env.get("ETTWATCH_PROGRESS_RANKS", "").strip().lower()
    if ranks not in ("", "0", "all"):
        _refuse("ETTWATCH_PROGRESS_RANKS", ranks, "0 or all", "0")
    return Settings(
        disabled=flag(env, "ETTWATCH_DISABLED"),
        spool=spool_folder(env, spool),
        fsync=flag(env, "ETTWATCH_FSYNC"),
        queue_events=int(_number(env, "ETTWATCH_QUEUE_EVENTS", 10_000, 10, 1_000_000)),
        report_every_s=_number(env, "ETTWATCH_REPORT_EVERY_S", 30, 0.1, 86_400),
        heartbeat_every_s=_number(env, "ETTWATCH_HEARTBEAT_EVERY_S", 60, 0.1, 86_400),
        progress_all=ranks == "all",
        exit_s=_number(env, "ETTWATCH_EXIT_S", 2, 0, 600),
        spool_bytes=int(_number(env, "ETTWATCH_SPOOL_MB", 512, 1, 1_000_000) * 1_000_000),
        brokers=Brokers(env) if env.get("ETTWATCH_KAFKA", "").strip() else None,
    )
