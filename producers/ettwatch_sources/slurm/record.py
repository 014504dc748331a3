"""One record of Slurm's accounting: one run of a job, as `sacct` or `scontrol` tells it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ettwatch_sources.times import NoTime

FIELDS: Final = (
    *("JobID", "JobIDRaw", "JobName", "Account", "User", "Partition", "QOS", "Cluster", "State", "Reason"),
    *("Submit", "Eligible", "Start", "End", "ExitCode", "AllocTRES", "ReqTRES", "NNodes", "NodeList", "Restarts"),
)
"""The fields that are asked of `sacct`, those of them that it has."""

_NOTHING: Final = frozenset({"", "None", "Unknown", "None assigned", "(null)", "N/A", "INVALID"})
_STEP: Final = re.compile(r"^(\d+(?:_\d+|\+\d+)?)\.(\S+)$")
_JOB: Final = re.compile(r"^\d+(?:_\d+|\+\d+)?$")

Clock = Callable[[object], int | None]
"""Reads a time as Slurm writes it to microseconds; None where it writes that there is none. Raises NoTime."""


class NoRecord(ValueError):
    """A line is no record of a job. The message says why."""


@dataclass(slots=True)
class Record:
    """One run of a job. Times are microseconds since the epoch, None where Slurm has none."""

    job_id: str
    submit: int | None
    eligible: int | None
    start: int | None
    end: int | None
    state: str
    reason: str = ""
    cluster: str = ""
    name: str = ""
    account: str = ""
    user: str = ""
    partition: str = ""
    qos: str = ""
    nodes: str = ""
    exit_code: int | None = None
    signal: int | None = None
    gpus: int | None = None
    restarts: int | None = None
    line: int = 0
    steps: set[str] = field(default_factory=set)
    """States of its steps."""


def base_of(job_id: str) -> tuple[str, str]:
    """Return the id of the job and that of the step: (`123_4`, `batch`) of `123_4.batch`; no step: an empty one.

    Raises NoRecord for array tasks that have no number of their own yet (`123_[5-9]`) and for what is no id.
    """
    step = _STEP.match(job_id)
    if step:
        return step[1].removesuffix("+0"), step[2]
    if not _JOB.match(job_id):
        raise NoRecord(f"{job_id[:60]!r} is not the id of one job")
    return job_id.removesuffix("+0"), ""


def from_cells(row: Mapping[str, str], clock: Clock, line: int) -> tuple[Record, str]:
    """Return a record of `sacct --parsable2` and the name of its step. Raises NoRecord."""
    if "JobID" not in row or "State" not in row:
        raise NoRecord("there is no column JobID or State; ask sacct for them with --format")
    job_id, step = base_of(row["JobID"])
    exit_code, signal = _exit(row.get("ExitCode", ""))
    record = Record(
        job_id=job_id,
        submit=_time(clock, row, "Submit"),
        eligible=_time(clock, row, "Eligible"),
        start=_time(clock, row, "Start"),
        end=_time(clock, row, "End"),
        state=row["State"],
        reason=_text(row, "Reason"),
        cluster=_text(row, "Cluster"),
        name=_text(row, "JobName"),
        account=_text(row, "Account"),
        user=_text(row, "User"),
        partition=_text(row, "Partition"),
        qos=_text(row, "QOS"),
        nodes=_text(row, "NodeList"),
        exit_code=exit_code,
        signal=signal,
        gpus=_gpus(_text(row, "AllocTRES") or _text(row, "ReqTRES")),
        restarts=_count(row.get("Restarts")),
        line=line,
    )
    return record, step


def from_json(job: Mapping[str, Any], clock: Clock, line: int) -> Record:
    """Return a record of `sacct --json` or `scontrol show jobs --json`. Raises NoRecord."""
    times = job.get("time")
    own = isinstance(times, Mapping)
    array = _inner(job, "array")
    parent = _number(array.get("job_id") if own else job.get("array_job_id"))
    task = _number(array.get("task_id") if own else job.get("array_task_id"))
    number = _number(job.get("job_id"))
    if not number:
        raise NoRecord("a job without job_id")
    job_id = f"{parent}_{task}" if parent and task is not None else str(number)
    inner = _inner(job, "state")
    state = inner.get("current") if own and inner else job.get("job_state", job.get("state"))
    states = [str(part) for part in (state if isinstance(state, list) else [state]) if part]
    if not states:
        raise NoRecord(f"job {job_id} has no state")
    reason = inner.get("reason") if own else job.get("state_reason")
    names = ("submission", "eligible", "start", "end")
    if not own:
        names = ("submit_time", "eligible_time", "start_time", "end_time")
    where: Mapping[str, Any] = times if isinstance(times, Mapping) else job
    submit, eligible, start, end = (clock(_number(where.get(name))) for name in names)
    code = _inner(job, "exit_code")
    signal = _inner(code, "signal")
    return Record(
        job_id=job_id,
        submit=submit,
        eligible=eligible,
        start=start,
        end=end,
        # Of several (CANCELLED, COMPLETING) the first is the state, the others are flags of it.
        state=states[0],
        reason=str(reason or ""),
        cluster=str(job.get("cluster") or ""),
        name=str(job.get("name") or ""),
        account=str(job.get("account") or ""),
        user=_user(job),
        partition=str(job.get("partition") or ""),
        qos=str(job.get("qos") or ""),
        nodes=str(job.get("nodes") or ""),
        exit_code=_number(code.get("return_code")),
        signal=_number(signal.get("id", signal.get("signal_id"))) or None,
        gpus=_json_gpus(job),
        restarts=_number(job.get("restart_cnt")),
        line=line,
        steps={str(state) for step in job.get("steps") or () for state in _states(step)},
    )


def from_oneliner(text: str, clock: Clock, line: int) -> Record:
    """Return a record of `scontrol --oneliner show job`. Raises NoRecord."""
    name = re.search(r"\bJobName=(.*?) (?:UserId|ArrayJobId)=", text)
    pairs = dict(re.findall(r"(?<!\S)([A-Za-z][\w/:]*)=(\S*)", text))
    if "JobId" not in pairs or "JobState" not in pairs:
        raise NoRecord("there is no JobId or JobState in the line")
    job_id = pairs["JobId"]
    if pairs.get("ArrayJobId") and pairs.get("ArrayTaskId", "").isdecimal():
        job_id = f"{pairs['ArrayJobId']}_{pairs['ArrayTaskId']}"
    job_id, _ = base_of(job_id)
    exit_code, signal = _exit(pairs.get("ExitCode", ""))
    return Record(
        job_id=job_id,
        submit=_time(clock, pairs, "SubmitTime"),
        eligible=_time(clock, pairs, "EligibleTime"),
        start=_time(clock, pairs, "StartTime"),
        end=_time(clock, pairs, "EndTime"),
        state=pairs["JobState"],
        reason=_text(pairs, "Reason"),
        name=name[1] if name else _text(pairs, "JobName"),
        account=_text(pairs, "Account"),
        user=_text(pairs, "UserId").split("(")[0],
        partition=_text(pairs, "Partition"),
        qos=_text(pairs, "QOS"),
        nodes=_text(pairs, "NodeList"),
        exit_code=exit_code,
        signal=signal,
        gpus=_gpus(_text(pairs, "AllocTRES") or _text(pairs, "TRES") or _text(pairs, "ReqTRES")),
        restarts=_count(pairs.get("Restarts")),
        line=line,
    )


def _time(clock: Clock, row: Mapping[str, str], name: str) -> int | None:
    text = row.get(name, "").strip()
    if text in _NOTHING:
        return None
    try:
        return clock(text)
    except NoTime as error:
        raise NoRecord(f"{name}: {error}") from None


def _text(row: Mapping[str, str], name: str) -> str:
    text = row.get(name, "").strip()
    return "" if text in _NOTHING else text


def _exit(text: str) -> tuple[int | None, int | None]:
    """`1:0` is exit code 1, `0:9` the signal 9."""
    code, _, signal = text.partition(":")
    return _count(code), _count(signal) or None


def _count(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdecimal() and len(text) < 12 else None


def _number(value: object) -> int | None:
    """A number as Slurm's JSON has it: plain, or with `set` beside it."""
    if isinstance(value, Mapping):
        if not value.get("set") or value.get("infinite"):
            return None
        value = value.get("number")
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _gpus(tres: str) -> int | None:
    """`cpu=64,gres/gpu:a100=8,gres/gpu=8` is 8 GPUs."""
    typed = 0
    for part in tres.split(","):
        name, _, count = part.partition("=")
        if not count.isdecimal() or len(count) > 9:
            continue
        if name == "gres/gpu":
            return int(count)
        if name.startswith("gres/gpu:"):
            typed += int(count)
    return typed or (0 if tres else None)


def _json_gpus(job: Mapping[str, Any]) -> int | None:
    tres = job.get("tres")
    if not isinstance(tres, Mapping):
        return _gpus(str(job.get("tres_alloc_str") or job.get("tres_req_str") or ""))
    parts = tres.get("allocated") or tres.get("requested") or []
    found = [part for part in parts if isinstance(part, Mapping) and part.get("type") == "gres"]
    texts = ",".join(f"gres/{part.get('name')}={part.get('count')}" for part in found)
    return _gpus(texts) if texts else (0 if parts else None)


def _inner(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _states(step: Any) -> list[str]:
    state = step.get("state") if isinstance(step, Mapping) else None
    return [str(part) for part in state] if isinstance(state, list) else [str(state)] if state else []


def _user(job: Mapping[str, Any]) -> str:
    association = job.get("association")
    inner = association.get("user") if isinstance(association, Mapping) else None
    return str(job.get("user") or job.get("user_name") or inner or "")
