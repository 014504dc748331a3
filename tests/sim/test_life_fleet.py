"""A fleet as a whole: machines are held by one job at a time, nights are quiet, storms preempt."""

from collections import Counter
from itertools import pairwise
from statistics import fmean

from ettwatch_sim import Failure, JobDone
from ettwatch_sim.life import Cluster, Maintenance, Scenario, Team, in_order, preset, summaries
from ettwatch_sim.life.attempt import Attempt
from ettwatch_sim.life.fleet import Fleet
from support.life import fold, small

HOUR = 3_600_000_000
DAY = 24 * HOUR


def attempts(seed: int, scenario: Scenario) -> list[Attempt]:
    return [item for item in Fleet(seed, scenario).run() if isinstance(item, Attempt)]


def test_no_host_is_held_twice_and_no_cluster_beyond_its_gpus() -> None:
    scenario = small(4.0)
    changes: dict[str, list[tuple[int, int]]] = {}
    for each in attempts(1, scenario):
        for host in each.hosts:
            changes.setdefault(host, []).append((each.start, each.released))
    assert {host[:2] for host in changes} == {"c1", "c2"}
    for held in changes.values():
        held.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(held))
    assert len(changes) <= (256 + 320) // 8


def test_jobs_wait_where_there_is_no_room() -> None:
    def waits(gpus: int) -> float:
        scenario = Scenario(
            days=5,
            clusters=(Cluster(name="c", gpus=gpus, storms_per_week=0),),
            teams=(Team(name="t", models=("retrieval",), jobs_per_day=15),),
        )
        done = [f for f in summaries(1, scenario) if isinstance(f, JobDone)]
        return fmean(f.stages["scheduling.queue_wait"] for f in done)

    assert waits(96) > 20 * waits(960)


def test_quiet_nights_weekends_and_timers() -> None:
    hours: Counter[int] = Counter()
    days: Counter[int] = Counter()
    timers: Counter[tuple[str, int]] = Counter()
    for each in attempts(1, preset("fleet").but(days=14.0)):
        if each.number == 0:
            ts = each.order.submitted - preset("fleet").begin  # a Monday
            days[ts // DAY % 7] += 1
            if each.order.eligible is None:
                hours[ts % DAY // HOUR] += 1
            else:
                timers[each.order.team.name, (each.order.eligible - preset("fleet").begin) % DAY] += 1
    assert sum(hours[h] for h in range(5)) < 0.2 * sum(hours[h] for h in range(9, 14))
    assert max(days[5], days[6]) < 0.7 * min(days[d] for d in range(5))
    assert set(timers.values()) == {14}, "a timer goes off every day at its time"


def test_storms_preempt_and_the_jobs_come_back() -> None:
    told = fold(in_order(2, small(2.0)))
    preempted = [s for s in told.values() if s.summary.nof_preempted]
    assert preempted
    for each in preempted:
        for before, after in pairwise(each.attempts):
            if before.outcome == "preempted":
                assert (before.cause, after.trigger) == ("capacity", "preemption")


def test_planned_work_is_told_as_such() -> None:
    work = Maintenance(cluster="c1", day=1.6, hours=3, share=1.0)
    scenario = small(2.0, maintenance=(work,)).but(
        clusters=tuple(c.model_copy(update={"storms_per_week": 0.0}) for c in small().clusters)
    )
    begin = scenario.begin + int(1.6 * DAY)
    facts = list(summaries(1, scenario))
    hit = [f for f in facts if isinstance(f, Failure) and f.cause == "maintenance"]
    assert hit
    assert {(f.cluster, f.outcome) for f in hit} == {("c1", "preempted")}
    assert all(begin <= f.ts < begin + 60_000_000 for f in hit)
    running = [a for a in attempts(1, scenario) if a.hosts[0].startswith("c1")]
    # (Of who was already ending nobody asks for hosts.)
    assert not any(begin + 60_000_000 < a.start < begin + 3 * HOUR for a in running)


def test_who_fails_by_its_own_code_gives_up() -> None:
    done = [f for f in summaries(1, small(4.0, retries=0)) if isinstance(f, JobDone)]
    own = {f.job for f in summaries(1, small(4.0, retries=0)) if isinstance(f, Failure) and f.cause == "user_code"}
    assert own
    assert all(f.outcome == "failed" for f in done if f.job in own)


def test_so_many_jobs_and_no_more() -> None:
    assert sum(isinstance(f, JobDone) for f in summaries(1, small(3.0, jobs=7))) == 7


def test_a_remedy_changes_no_dice() -> None:
    """What is drawn for a job is the same with and without remedies, so that their difference is theirs."""
    plain = {a.order.name: a.order for a in attempts(1, small(1.0))}
    other = {a.order.name: a.order for a in attempts(1, small(1.0, remedies="all"))}
    assert plain.keys() == other.keys()
    for name, order in plain.items():
        assert (order.target, order.submitted, order.cluster) == (
            other[name].target,
            other[name].submitted,
            other[name].cluster,
        )
