"""Real processes and a real Kafka: worker, two of the windows of which one is killed, the sink, and ClickHouse."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from ettwatch_clickhouse import connect
from ettwatch_core import Rules
from ettwatch_core.windows import MINUTE_US, Sizes
from ettwatch_schemas import Event, Window, decode_window, encode_event
from ettwatch_sim import Shape, random_jobs
from support.clickhouse import front_process
from support.kafka_native import Reaper
from support.pipeline_programs import COMMAND, Program, ProgramError, until
from support.windows import OWNERS, Truth, compare, dims, fold, is_empty, recount

pytestmark = pytest.mark.kafka

PARTITIONS = 2
SIZES = Sizes.parse("1h,6h,3d", "4h")
OPTIONS = ("--lengths", "1h,6h,3d", "--correct-for", "4h", "--wait", "2s", "--snapshot-every", "2s")
OWNERS_FILE = """
owners:
  scheduling: {team: capacity, contact: capacity@example.com}
  trainer_init: {team: trainers, contact: trainers@example.com}
  trainer_init.checkpoint_load:
    team: storage
    contact: storage@example.com
  pt2_compilation: {team: compilers, contact: compilers@example.com}
"""


def ended_jobs(begin: int) -> tuple[list[Event], list[Truth]]:
    """Events of some jobs that are over, as they arrive, and what is true of each."""
    told: dict[str, list[Event]] = {}
    arrived = list(random_jobs(7, 16, shape=Shape(begin=begin, spacing_s=120)))
    for event in arrived:
        told.setdefault(event.job, []).append(event)
    over = {job for job, events in told.items() if any(event.kind == "job_ended" for event in events)}
    dice = Random(7)
    folded = [fold(job, told[job], Rules(), begin, dice) for job in sorted(over)]
    closed = {f.truth.summary.job for f in folded if f.truth.summary.status in ("succeeded", "failed", "cancelled")}
    truths = [f.truth for f in folded if f.truth.summary.job in closed]
    assert len(truths) > 6
    return [event for event in arrived if event.job in closed], truths


def newest(bootstrap: str, topic: str) -> dict[tuple[str, str, str, int], Window]:
    """The windows of a topic, of each the greatest version."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    places = [TopicPartition(topic, n) for n in range(PARTITIONS)]
    found: dict[tuple[str, str, str, int], Window] = {}
    try:
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            for records in consumer.poll(500).values():
                for record in records:
                    window = decode_window(record.value)
                    key = (window.scope, window.name, window.length, window.end // MINUTE_US)
                    if key not in found or window.version > found[key].version:
                        found[key] = window
    finally:
        consumer.close()
    return found


def differs(told: dict[tuple[str, str, str, int], Window], truths: list[Truth]) -> str | None:
    """Say where the windows differ from a recount; None where they do not."""
    upto = max((key[3] for key in told), default=0)
    compared = 0
    for dim in sorted(dims(truths, OWNERS)):
        for size in SIZES.all:
            for end in range(size.first_end(upto - SIZES.correct + 61), size.last_end(upto) + 1, size.step):
                if size.step == 1 and (end + len(dim.name)) % 7:
                    continue
                counted = recount(truths, dim, size, end, OWNERS)
                window = told.get((dim.scope, dim.name, size.name, end))
                if window is None:
                    if not is_empty(counted):
                        return f"{dim} {size.name} {end} is missing"
                    continue
                try:
                    compare(window, counted)
                except AssertionError as error:
                    return str(error)
                compared += 1
    return None if compared > 50 else f"only {compared} windows are there"


@pytest.fixture
def reaper(tmp_path: Path) -> Iterator[Reaper]:
    (tmp_path / "reaper").mkdir()
    reaper = Reaper(tmp_path / "reaper")
    yield reaper
    reaper.close()


def test_worker_to_clickhouse(kafka: str, prefix: str, tmp_path: Path, swept: None, reaper: Reaper) -> None:
    (tmp_path / "owners.yaml").write_text(OWNERS_FILE)
    environment = {
        "ETTWATCH_KAFKA": kafka,
        "ETTWATCH_TOPIC_PREFIX": prefix,
        "ETTWATCH_PARTITIONS": str(PARTITIONS),
        "ETTWATCH_REPLICATION": "1",
        "ETTWATCH_OWNERS": str(tmp_path / "owners.yaml"),
    }
    made = [str(COMMAND), "topics", "create", "--timeout", "60"]
    subprocess.run(made, env={"PATH": "/usr/bin", **environment}, check=True, capture_output=True, timeout=120)
    now = int(time.time() * 1e6)
    events, truths = ended_jobs(now - 3 * 3600 * 1_000_000)
    worker = Program("worker", tmp_path, ["worker", "--publish-every", "1s"], environment, reaper)
    one = Program("one", tmp_path, ["windows", *OPTIONS, "--session-timeout", "6s"], environment, reaper)
    two = Program("two", tmp_path, ["windows", *OPTIONS, "--session-timeout", "6s"], environment, reaper)
    programs = (worker, one, two)
    try:
        for program in programs:
            program.start(ready=False)
        producer = KafkaProducer(bootstrap_servers=kafka, acks="all")
        half = len(events) // 2
        for event in events[:half]:
            producer.send(f"{prefix}.events", key=event.job.encode(), value=encode_event(event))
        producer.flush(90)
        for program in programs:
            program.wait_ready()
        until("windows are published", lambda: bool(newest(kafka, f"{prefix}.windows")), 180, 1)
        one.kill()
        for event in events[half:]:
            producer.send(f"{prefix}.events", key=event.job.encode(), value=encode_event(event))
        producer.close()
        one.start(ready=False)
        try:
            until("equal", lambda: differs(newest(kafka, f"{prefix}.windows"), truths) is None, 240, 2)
        except ProgramError:
            raise AssertionError(
                f"{differs(newest(kafka, f'{prefix}.windows'), truths)}\n{one.tail()}\n{two.tail()}"
            ) from None
        # The other one may have done it all, before this one was up.
        one.wait_ready()
        assert one.stop() == 0
        assert two.stop() == 0
    finally:
        for program in programs:
            program.close()
    told = newest(kafka, f"{prefix}.windows")
    with front_process(tmp_path / "clickhouse") as url:
        environment["ETTWATCH_CLICKHOUSE"] = f"{url}/ettwatch"
        sink = [str(COMMAND), "sink", "--once", "--web", "off"]
        migrated = subprocess.run(
            [str(COMMAND), "migrate"], env={"PATH": "/usr/bin", **environment}, capture_output=True, timeout=120
        )
        assert migrated.returncode == 0, migrated.stderr
        done = subprocess.run(sink, env={"PATH": "/usr/bin", **environment}, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        check_clickhouse(f"{url}/ettwatch", told)


def check_clickhouse(address: str, told: dict[tuple[str, str, str, int], Window]) -> None:
    """The view `windows` says what the topic says."""
    store = connect(address)
    try:
        rows = store.query(
            "SELECT scope, name, length, intDiv(toUnixTimestamp64Micro(end), 60000000), version, ett_pct, gpu_lost_s, "
            "tts_count, ttr_p90_s, nof, stages, live FROM windows"
        ).rows
    finally:
        store.close()
    found = {row[:4]: row[4:] for row in rows}
    assert len(found) == len(rows) == len(told)
    for key, w in told.items():
        figures = (w.version, w.ett_pct, w.gpu_lost_s, w.tts_count, w.ttr_p90_s, w.nof, w.stages, w.live)
        assert found[key] == figures
