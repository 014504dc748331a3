"""Compile records of PyTorch's structured trace (`TORCH_TRACE=folder`): when torch.compile was at work.

Format: torch/_logging/structured.py, torch/_dynamo/utils.py. Records begin with a letter, month, day and time without a
year, which are not used: the chromium events in them carry microseconds since the epoch. Older traces have none; then
the compilation metrics tell when a compilation began and how long it took.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.logs.ranks import place_in
from ettwatch_sources.pen import Pen
from ettwatch_sources.times import NoTime, duration
from ettwatch_sources.told import Told

_RECORD: Final = re.compile(r"^[VDIWE]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ [^\]]+\] (\{.*)")
_WHOLE: Final = "pt2_compilation.dynamo"
_PHASES: Final = {
    "dynamo": _WHOLE,
    "entire_backward_compile": "pt2_compilation.aot_autograd",
    "backend_compile": "pt2_compilation.aot_autograd",
    "create_aot_dispatcher_function": "pt2_compilation.aot_autograd",
    "inductor_compile": "pt2_compilation.inductor",
    "compile_fx_inner": "pt2_compilation.inductor",
    "fx_codegen_and_compile": "pt2_compilation.inductor",
    "compile_file": "pt2_compilation.inductor",
    "async_compile.wait": "pt2_compilation.inductor",
    "cudagraphify": "pt2_compilation.inductor",
    "autotune_select_algorithm": "pt2_compilation.autotune",
    "benchmark_all_configs": "pt2_compilation.autotune",
    "CachingAutotuner.benchmark_all_configs": "pt2_compilation.autotune",
    "inductor_codecache_torch_key": "pt2_compilation.cache_load",
    "fx_graph_cache_lookup": "pt2_compilation.cache_load",
    "TritonBundler.read_and_emit": "pt2_compilation.cache_load",
}


class _Trace:
    """The spans that are open, innermost last, and whether chromium events were seen."""

    def __init__(self, feed: Feed) -> None:
        place = place_in(feed.name)
        self.pen = Pen(feed, feed.default_job, attempt=feed.options.attempt + place.attempt)
        self.pen.rank = place.rank
        self.open: list[tuple[str, str]] = []
        self.chromium = False


def read(feed: Feed) -> Iterator[Told]:
    """Read the trace of one process."""
    trace = _Trace(feed)
    head: dict[str, Any] | None = None
    began = 0
    payload: list[str] = []
    for line in feed.lines():
        found = _RECORD.match(line.text)
        if found is None:
            # Payloads follow their record, each line after a tab.
            if head is not None and "chromium_event" in head and len(payload) < 10_000:
                payload.append(line.text)
            continue
        yield from _record(trace, head, payload, began)
        payload, began = [], line.number
        try:
            head = json.loads(found[1])
        except (ValueError, RecursionError) as error:
            head = None
            if line.cut:
                feed.flag("truncated")
            feed.refuse(f"no record of a trace: {error}")
    yield from _record(trace, head, payload, began)
    if trace.open:
        feed.flag("no_end", trace.pen.job)


def _record(trace: _Trace, head: dict[str, Any] | None, payload: list[str], line: int) -> Iterator[Told]:
    if not isinstance(head, dict):
        return
    feed = trace.pen.feed
    here, feed.line = feed.line, line
    if isinstance(head.get("rank"), int):
        trace.pen.rank = head["rank"]
    try:
        if "chromium_event" in head and payload:
            yield from _event(trace, json.loads("\n".join(payload)), head)
        elif isinstance(head.get("compilation_metrics"), dict) and not trace.chromium:
            yield from _metrics(trace, head["compilation_metrics"], head)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        feed.refuse(f"no record of a trace: {error}")
    finally:
        feed.line = here


def _event(trace: _Trace, event: dict[str, Any], head: dict[str, Any]) -> Iterator[Told]:
    trace.chromium = True
    phase = _PHASES.get(str(event["name"]))
    if phase is None or event["ph"] not in {"B", "E"}:
        return  # dozens of finer steps, and marks without a length
    name = str(event["name"])
    ts = trace.pen.feed.time_of_number(event["ts"], "us")
    if event["ph"] == "B":
        parent = trace.open[-1][1] if trace.open else None
        if name == "dynamo" and (head.get("frame_compile_id") or 0) > 0:
            phase = "pt2_compilation.recompile"
        key = f"{name}/{len(trace.open)}"
        attrs = {"compile_id": _compile_id(head), "name": name}
        yield from trace.pen.begin(phase, ts, key, parent=parent, attrs=attrs)
        trace.open.append((name, f"{phase}@{ts}"))
        return
    for depth in range(len(trace.open) - 1, -1, -1):
        if trace.open[depth][0] == name:
            # What was open inside it was left by an exception.
            for inner in range(len(trace.open) - 1, depth - 1, -1):
                yield from trace.pen.finish(f"{trace.open[inner][0]}/{inner}", ts)
            del trace.open[depth:]
            return


def _metrics(trace: _Trace, metrics: dict[str, Any], head: dict[str, Any]) -> Iterator[Told]:
    start, took = metrics.get("start_time"), metrics.get("entire_frame_compile_time_s")
    if start is None or took is None:
        raise NoTime("compilation metrics without start_time or entire_frame_compile_time_s")
    ts = trace.pen.feed.time_of_number(start, "s")
    again = (head.get("frame_compile_id") or 0) > 0
    phase = "pt2_compilation.recompile" if again else "pt2_compilation"
    yield from trace.pen.span(phase, ts, ts + duration(took, "s"), attrs={"compile_id": _compile_id(head)})


def _compile_id(head: dict[str, Any]) -> str:
    return f"{head.get('frame_id', '-')}/{head.get('frame_compile_id', '-')}"


KIND: Final = Kind(
    name="torchtrace",
    title="PyTorch's structured traces (TORCH_TRACE): compile records",
    read=read,
    is_it=lambda head, name: bool(re.search(r"^[VD]\d{4} [\d:.]+ \d+ torch/[^\]]+\] \{", head, re.MULTILINE)),
    unknown=("no_submit", "no_eligible", "no_start", "no_end", "no_gpus", "no_positions", "no_data_wait"),
)
