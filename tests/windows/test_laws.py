"""Windows equal a recount: for random jobs, any order, corrections, doubled and late messages, owners that die."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ettwatch_core import Rules
from ettwatch_core.windows import (
    MINUTE_US,
    Clock,
    Dim,
    Merger,
    Sizes,
    Source,
    Told,
    dump_merger,
    dump_source,
    load_merger,
    load_source,
)
from ettwatch_sim import Delivery, Shape
from support.windows import (
    OTHERS,
    OWNERS,
    Truth,
    all_ends,
    compare,
    dims,
    interleaved,
    is_empty,
    random_fleet,
    recount,
)
from support.windows_sim import WAIT_US, Play, World

HOUR_US = 60 * MINUTE_US
BEGIN = Shape().begin
LATE = Delivery(late=0.15, late_s=4_000, doubled=0.1)
RULES = Rules(lateness=2 * HOUR_US)
"""Some hours of it are settled while the job goes on."""

seeds = st.integers(0, 2**32)


def check(world: World, truths: list[Truth], dice: Random, share: float = 0.08) -> int:
    """Compare some windows of each size, all that are there at the edges; return how many."""
    upto = (world.clock_us - WAIT_US) // MINUTE_US
    told, compared = world.windows(), 0
    for dim in sorted(dims(truths, world.owners)):
        for size in world.sizes.all:
            ends = all_ends(world.sizes, upto)[size.name]
            for end in ends:
                if end not in (ends[0], ends[-1]) and dice.random() > share:
                    continue
                counted = recount(truths, dim, size, end, world.owners)
                window = told.get((dim.scope, dim.name, size.name, end))
                if window is None:
                    assert is_empty(counted), (dim, size, end)
                    continue
                compare(window, counted)
                compared += 1
    return compared


def minutes_pass(play: Play, count: int) -> None:
    for _ in range(count):
        play.world.clock_us += 61_000_000
        play.settle(play.told)


@settings(max_examples=8)
@given(seeds, st.sampled_from([0.0, 0.01, 0.06]), st.sampled_from([("1h,5h,49h", "1h"), ("90m,3d", "2h")]))
def test_owners_may_die_between_any_two_records(seed: int, crash: float, lengths: tuple[str, str]) -> None:
    dice = Random(seed)
    now = BEGIN + 3 * HOUR_US
    fleet = random_fleet(seed, 4, RULES, now, delivery=LATE)
    truths = [folded.truth for folded in fleet]
    world = World(dice, Sizes.parse(*lengths), now)
    play = Play(world, crash)
    for message in interleaved(dice, fleet):
        world.tell(message)
        for _ in range(dice.randrange(6)):
            play.turn()
        world.clock_us += dice.randrange(2_500_000)
    play.settle(play.told)
    minutes_pass(play, 2)
    assert check(world, truths, dice) > 10
    # Jobs that are over leave memory, hours get coarser; what was counted stays, also over deaths.
    for hours in (2, 6):
        play.crash = crash
        world.clock_us += hours * HOUR_US
        for _ in range(100):
            play.turn()
        play.settle(play.told)
        minutes_pass(play, 2)
        check(world, truths, dice)


@settings(max_examples=5)
@given(seeds)
def test_other_owners_of_stages_count_from_the_begin(seed: int) -> None:
    dice = Random(seed)
    now = BEGIN + 3 * HOUR_US
    fleet = random_fleet(seed, 3, RULES, now)
    truths = [folded.truth for folded in fleet]
    world = World(dice, Sizes.parse("1h,6h", "3h"), now)
    play = Play(world, 0.02)
    messages = list(interleaved(dice, fleet))
    for number, message in enumerate(messages):
        world.tell(message)
        if number == len(messages) // 2:
            world.owners = OTHERS
            play.own(OTHERS)
        for _ in range(dice.randrange(6)):
            play.turn()
        world.clock_us += dice.randrange(2_000_000)
    play.settle(play.told)
    minutes_pass(play, 2)
    assert check(world, truths, dice)
    upto = (world.clock_us - WAIT_US) // MINUTE_US
    gone = {rule.owner.team for rule in OWNERS.rules} - {rule.owner.team for rule in OTHERS.rules}
    for (scope, name, _, end), window in world.windows().items():
        if scope == "owner" and name in gone and end > upto - world.sizes.correct:
            assert (window.gpu_lost_s, window.gpu_e2e_s) == (0, 0)


@settings(max_examples=15)
@given(seeds)
def test_any_order_of_topics_gives_the_same_sums(seed: int) -> None:
    """The sums are a function of what was told, not of how the topics were read beside each other."""
    now = BEGIN + 2 * HOUR_US
    minute = now // MINUTE_US
    fleet = random_fleet(seed, 3, RULES, now, delivery=LATE)
    sizes = Sizes.parse("1h,24h", "4h")
    seen = []
    for order in range(2):
        source = Source(sizes, minute, OWNERS)
        for topic, message in interleaved(Random(f"{seed} {order}"), fleet):
            getattr(source, {"jobs": "summary"}.get(topic, topic))(message, minute)
        seen.append(
            {
                (group, hour): {at: amounts for at, amounts in sheet.buckets(hour).items() if amounts}
                for group, sheet in source.sums.sheets.items()
                for hour in sheet.hours()
            }
        )
    assert seen[0] == seen[1]


@settings(max_examples=15)
@given(seeds)
def test_both_stages_come_back_from_their_lines(seed: int) -> None:
    now = BEGIN + 3 * HOUR_US
    minute = now // MINUTE_US
    sizes = Sizes.parse("1h,5h,49h", "1h")
    source, merger = Source(sizes, minute, OWNERS), Merger(sizes, 1, 1)
    for topic, message in interleaved(Random(seed), random_fleet(seed, 3, RULES, now)):
        getattr(source, {"jobs": "summary"}.get(topic, topic))(message, minute)
    merger.take(Told(0, 1, sizes.layout, source.tell(source.dirty()), Clock(minute, minute)))
    merger.advance(minute)
    lines = list(dump_source(source))
    again = load_source(lines, sizes, OWNERS)
    assert list(dump_source(again)) == lines
    assert again.dirty() == source.dirty() == {}
    lines = list(dump_merger(merger))
    back = load_merger(lines, sizes, 1, 1)
    assert list(dump_merger(back)) == lines
    assert back.publish(5, lambda: True) == merger.publish(5, lambda: True)


def test_an_outage_is_0_per_cent_and_no_hole() -> None:
    """A job that holds GPUs and does nothing is in every window."""
    dice = Random(1)
    now = BEGIN + 3 * HOUR_US
    fleet = random_fleet(2, 4, Rules(lateness=None), now)
    truths = [folded.truth for folded in fleet]
    world = World(dice, Sizes.parse("1h,6h", "1h"), now)
    play = Play(world, 0.0)
    for message in interleaved(dice, fleet):
        world.tell(message)
    play.settle(play.told)
    minutes_pass(play, 2)
    silent = [t for t in truths if t.summary.status == "silent"]
    assert silent
    group = silent[0].summary.cluster or ""
    upto = (now - WAIT_US) // MINUTE_US
    window = world.windows()[("cluster", group, "1h", upto)]
    counted = recount(truths, Dim("cluster", group), world.sizes.all[0], upto, OWNERS)
    compare(window, counted)
    assert window.gpu_e2e_s > 0
