"""The fleet of the cookbook: the cases, and random jobs of the simulator over two weeks. Always the same."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final
from zlib import crc32

from ettwatch_clickhouse import Rollups, Store, Writer
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_schemas import Event, decode_event, encode_event
from ettwatch_sim import IN_ORDER, Shape, random_jobs

CASES: Final = Path(__file__).parents[1] / "cases"
SHAPE: Final = Shape(
    begin=1_789_344_000_000_000,  # 2026-09-14, a Monday
    spacing_s=4 * 3_600,
    loop_s=3 * 3_600,
    report_every_s=120,
    odd=0.0,
)
JOBS: Final = 72
NOW: Final = 1_790_600_000
"""When all was written, in seconds since the Unix epoch: after the last event."""

OWNERS: Final = (
    ("scheduling", "", "", "scheduler", "platform", "#platform"),
    ("hardware_setup", "", "", "launcher", "platform", "#platform"),
    ("hardware_setup.image_pull", "c3", "", "registry", "images", "#images"),
    ("trainer_init", "", "", "trainer", "training", "#training"),
    ("trainer_init.get_first_batch_data", "", "", "reader", "data", "#data"),
    ("pt2_compilation", "", "", "compiler", "compilers", "#compilers"),
    ("pt2_compilation", "", "ranker", "compiler", "ranking", "#ranking"),
    ("wasted_training", "", "", "trainer", "training", "#training"),
    ("wasted_training.data_stall", "", "", "reader", "data", "#data"),
    ("wasted_training.checkpoint_save", "", "", "storage", "storage", "#storage"),
    ("shutdown.model_publish", "", "", "publisher", "serving", "#serving"),
)
"""Stage, cluster, model, system, team, contact."""


def events() -> Iterator[list[Event]]:
    """The events of each job."""
    for path in sorted(CASES.glob("*.jsonl")):
        yield [decode_event(line) for line in path.read_bytes().splitlines()]
    told = sorted(random_jobs(4, JOBS, shape=SHAPE, delivery=IN_ORDER), key=attrgetter("job"))
    for _, of_job in groupby(told, key=attrgetter("job")):
        yield list(_on_hosts(of_job))


def _on_hosts(told: Iterable[Event]) -> Iterator[Event]:
    """Ranks of a job sit on hosts of their own, of a dozen."""
    for event in told:
        if event.source == "trainer":
            host = f"gpu-{(crc32(event.job.encode()) + 5 * event.rank) % 12:02d}"
            yield event.model_copy(update={"host": host})
        else:
            yield event


def fill(store: Store) -> None:
    """Fill the tables, owners and rollups too."""
    writer = Writer(store, clock=lambda: float(NOW))
    for told in events():
        state = JobState(told[0].job)
        for event in told:
            apply(state, event, Rules())
            writer.event(event, encode_event(event))
        writer.snapshot(snapshot(state, Rules()))
    writer.flush()
    columns = ("loaded", "digest", "stage_prefix", "cluster", "model", "system", "team", "contact", "source")
    store.insert("owners_log", columns, [(NOW * 1_000_000, "cookbook", *rule, "owners.yaml") for rule in OWNERS])
    Rollups(store, clock=lambda: float(NOW)).run()
