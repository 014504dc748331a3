"""A loop laid out anew: the same work after other pauses, further or less far than it was observed."""

from bisect import bisect_left, bisect_right
from math import ceil
from typing import Final

from ettwatch_monitor.advice.life import Loop, Pause, Report
from ettwatch_monitor.advice.observe_loop import SAVE
from ettwatch_monitor.advice.ran import Ran, Rhythm, Saves

_STEP: Final = 240_000_000
"""Between two reports where nothing was observed (µs)."""
_NOT_YET: Final = 1_000_000
"""A save that was cut off would have taken so much longer at least (µs)."""


class Runner:
    """Lays out one loop.

    Args:
        loop: As observed.
        begin: The first batch (µs since the epoch).
        start: Where it resumes (samples).
        stop: When it told its last advance before it failed; None if it did not fail.
        target: Where its work is done; None: nowhere.
        factors: How many times as long a pause of a stage takes; 1 where it is not there.
        stall: How many times as long it waits for data.
        speed: How many times as fast it runs.
        saves: How saving is other; None: it is not.
        rhythms: Pauses of jobs of its kind, by stage.
        stands: How long (µs) it stands still before it tells its last advance; None: as long as it did.
    """

    def __init__(
        self,
        loop: Loop,
        begin: int,
        start: int,
        stop: int | None,
        target: int | None,
        *,
        factors: dict[str, float],
        stall: float,
        speed: float,
        saves: Saves | None,
        rhythms: dict[str, Rhythm],
        stands: int | None = None,
    ) -> None:
        self._loop, self._begin, self._start = loop, begin, start
        stood = max(0, -loop.still)
        self._stands = stood if stands is None else stands
        self._stop, self._target = None if stop is None else stop - stood, target
        self._factors, self._stall, self._speed, self._saves, self._rhythms = factors, stall, speed, saves, rhythms
        last = loop.reports[-1]
        self._until = loop.free - stood
        self._ats = [self._squeezed(min(report.at, self._until), report.waited) for report in loop.reports]
        self._free = max(1, self._squeezed(self._until, last.waited))
        self._rate = max(1, last.position) * speed / self._free
        self._waits = last.waited * stall / self._free

    def _squeezed(self, at: int, waited: int) -> int:
        return at - round((1 - self._stall) * waited)

    def run(self) -> Ran:
        """Lay it out."""
        loop, ran = self._loop, Ran()
        first = next((at for at, r in zip(self._ats, loop.reports, strict=True) if r.position > 0), self._free)
        goal = None if self._target is None else max(first, self._free_of(self._target - self._start))
        horizon = goal
        if self._stop is not None:
            age = max(first, self._stop - self._begin)
            horizon = age if horizon is None else min(age, horizon)
        pauses, kept = self._pauses((self._free if horizon is None else horizon) + max(0, loop.still))
        begins: list[int] = []
        ends: list[int] = []
        shift, free = self._begin, self._free if horizon is None else horizon
        stopped = None
        for pause in pauses:
            start = pause.at + shift
            if goal is not None and pause.at >= goal:
                break
            if self._stop is not None and start >= self._stop and pause.at >= first:
                break
            begins.append(start)
            ends.append(start + pause.length)
            shift += pause.length
            if self._stop is not None and ends[-1] > self._stop and pause.at >= first:
                stopped = pause.at
                break
        if stopped is not None:
            free, ran.end = stopped, self._stop or 0
            ends[-1] = ran.end
        elif self._stop is not None:
            free = max(first, self._stop - shift)
            ran.done = goal is not None and goal < free
            free = goal if ran.done and goal is not None else free
            ran.end = max(free + shift, 0 if ran.done else self._stop)
        else:
            free = self._free if goal is None else goal
            ran.done, ran.end = True, free + shift
        told = [pause.at for pause in pauses[: len(begins)]]
        ran.pauses = [(p.stage, b, e) for p, b, e in zip(pauses, begins, ends, strict=False)]
        self._report(ran, free, told, begins, ends, kept)
        self._secure(ran, told, ends, kept, cut=stopped is not None)
        if self._stop is not None and not ran.done:
            self._secure_last(ran, free, pauses, kept, len(ends) - (stopped is not None))
        if self._stop is not None and not ran.done and self._until < loop.free:
            self._stand(ran)
        return ran

    def _stand(self, ran: Ran) -> None:
        """It stands still for a while before it tells so: with the last advance that it made."""
        at, ran.end = ran.end, ran.end + self._stands
        if ran.pauses and ran.pauses[-1][2] == at:
            ran.pauses[-1] = (*ran.pauses[-1][:2], ran.end)
        elif ran.reports and ran.reports[-1][0] == at:
            ran.reports[-1] = (ran.end, *ran.reports[-1][1:])

    def _pauses(self, until: int) -> tuple[list[Pause], dict[int, int]]:
        """All pauses up to some free running; and where each observed one is in the list."""
        loop, relaid = self._loop, self._saves is not None and self._saves.every is not None
        out: list[tuple[Pause, int]] = []
        seen: dict[str, int] = {}
        for i, pause in enumerate(loop.pauses):
            if pause.stage == SAVE and relaid:
                continue
            seen[pause.stage] = max(seen.get(pause.stage, 0), pause.at)
            out.append((Pause(self._new_at(pause.at), pause.stage, self._new_length(pause.stage, pause.length)), i))
        save = self._rhythms.get(SAVE)
        if loop.cut is not None and save is not None and not relaid:
            seen[SAVE] = loop.free + loop.cut
            out.append((Pause(self._new_at(seen[SAVE]), SAVE, self._new_length(SAVE, save.length)), -1))
        for stage, rhythm in self._rhythms.items():
            every = rhythm.every
            if stage == SAVE and relaid and self._saves is not None and self._saves.every is not None:
                every, at = self._saves.every, self._saves.every
            else:
                # An observed loop told all its pauses up to its end.
                at = max(seen.get(stage, 0) + every, self._until + max(0, loop.still) + 1)
            while at <= until:
                out.append((Pause(self._new_at(at), stage, self._new_length(stage, rhythm.length)), -1))
                at += every
        out.sort(key=lambda each: each[0].at)
        return [pause for pause, _ in out], {i: place for place, (_, i) in enumerate(out) if i >= 0}

    def _new_at(self, at: int) -> int:
        return at if self._stall == 1 else self._squeezed(at, self._waited_at(at))

    def _waited_at(self, at: int) -> int:
        reports = self._loop.reports
        i = bisect_right([r.at for r in reports], at)
        if i >= len(reports):
            return round(at * reports[-1].waited / max(1, self._loop.free))
        return reports[i].waited

    def _new_length(self, stage: str, length: int) -> int:
        left = self._saves.blocking if self._saves is not None and stage == SAVE else 1.0
        return round(length * left * self._factors.get(stage, 1.0))

    def _free_of(self, position: int) -> int:
        """After how much free running it is at a position, counted from its start."""
        before = (0, 0.0)
        for at, report in zip(self._ats, self._loop.reports, strict=True):
            here = report.position * self._speed
            if here >= position:
                if here == before[1]:
                    return at
                return before[0] + ceil((at - before[0]) * (position - before[1]) / (here - before[1]))
            before = (at, here)
        return before[0] + ceil((position - before[1]) / self._rate)

    def _position(self, free: int) -> int:
        """The position after so much free running."""
        reports = self._loop.reports
        i = bisect_left(self._ats, free)
        if i >= len(reports):
            return self._start + int(reports[-1].position * self._speed + (free - self._ats[-1]) * self._rate)
        at, here = self._ats[i], reports[i].position * self._speed
        since, before = (self._ats[i - 1], reports[i - 1].position * self._speed) if i else (0, 0.0)
        part = 1.0 if at == since else (free - since) / (at - since)
        return self._start + int(before + (here - before) * part)

    def _time(self, free: int, told: list[int], ends: list[int]) -> int:
        i = bisect_left(told, free) - 1
        return self._begin + free if i < 0 else ends[i] + free - told[i]

    def _report(
        self, ran: Ran, free: int, told: list[int], begins: list[int], ends: list[int], kept: dict[int, int]
    ) -> None:
        loop, before = self._loop, 0
        for at, report in zip(self._ats, loop.reports, strict=True):
            if at > free:
                break
            ts = self._moved(report, at, told, begins, ends, kept, report.position > before)
            if ts is None or ts > ran.end:
                continue
            before = max(before, report.position)
            ran.reports.append(
                (ts, self._start + int(report.position * self._speed), round(report.waited * self._stall))
            )
        at = self._ats[-1] + _STEP
        while at < free:
            ts = self._time(at, told, ends)
            ran.reports.append((ts, self._position(at), round(at * self._waits)))
            at += _STEP
        last = ran.reports[-1] if ran.reports else (0, self._start, 0)
        goal = self._target if ran.done and self._target is not None else None
        ran.reached = max(last[1], self._position(free) if goal is None else goal)
        end = self._time(free, told, ends)
        if ran.reached > last[1] and end > last[0]:
            waits = last[2] if free <= self._ats[-1] else max(last[2], round(free * self._waits))
            ran.reports.append((end, ran.reached, waits))
        ran.reports.sort()

    def _moved(
        self,
        report: Report,
        at: int,
        told: list[int],
        begins: list[int],
        ends: list[int],
        kept: dict[int, int],
        rises: bool,
    ) -> int | None:
        if report.pause < 0:
            return self._time(at, told, ends)
        place = kept.get(report.pause)
        if place is None or place >= len(begins):
            return self._time(at, told, ends) if rises else None
        length = self._loop.pauses[report.pause].length
        return begins[place] + round(report.into * (ends[place] - begins[place]) / max(1, length))

    def _secure(self, ran: Ran, told: list[int], ends: list[int], kept: dict[int, int], *, cut: bool) -> None:
        """Which checkpoints are safe before it fails. One that was being saved then (`cut`) is not."""
        loop, saves = self._loop, self._saves
        late = max((d.at - self._until + d.delay for d in loop.durables if d.pause < 0), default=0)
        for durable in loop.durables:
            if durable.pause >= 0:
                ended = sum(p.length for p in loop.pauses[durable.pause + 1 :]) + self._until - durable.at
                late = max(late, durable.delay - ended)
        limit = ran.end + max(0, loop.still, late)
        whole = len(ends) - cut
        delays = [d.delay for d in loop.durables if d.pause >= 0]
        usual = round(sum(delays) / len(delays)) if delays else 0
        rhythm = self._rhythms.get(SAVE)
        if saves is not None and saves.every is not None:
            apart = 0 if rhythm is None else round((1 - saves.blocking) * rhythm.length)
            for at, end, (stage, _, _) in zip(told[:whole], ends, ran.pauses, strict=False):
                if stage == SAVE:
                    ran.durables.append((end + usual + apart, self._position(at)))
        else:
            for durable in loop.durables:
                position = self._start + int(durable.position * self._speed)
                if durable.pause < 0:
                    beyond = max(0, durable.at - self._until)
                    ts = self._time(min(durable.at, self._until), told, ends) + beyond + durable.delay
                    ran.durables.append((ts, min(position, ran.reached) if beyond == 0 else position))
                    continue
                place = kept.get(durable.pause)
                if place is not None and place < whole:
                    apart = 0 if saves is None else round((1 - saves.blocking) * loop.pauses[durable.pause].length)
                    ran.durables.append((ends[place] + durable.delay + apart, position))
            observed = set(kept.values())
            for place in range(whole):
                if place not in observed and place < len(ran.pauses) and ran.pauses[place][0] == SAVE:
                    apart = 0 if saves is None or rhythm is None else round((1 - saves.blocking) * rhythm.length)
                    ran.durables.append((ends[place] + usual + apart, self._position(told[place])))
        ran.durables = sorted(each for each in ran.durables if each[0] <= limit)

    def _secure_last(self, ran: Ran, free: int, pauses: list[Pause], kept: dict[int, int], whole: int) -> None:
        """The save that was cut off by the failure, or was yet to come, is safe if it now begins early enough."""
        loop, rhythm, last = self._loop, self._rhythms.get(SAVE), len(self._loop.pauses) - 1
        needs, place = 0 if rhythm is None else rhythm.length, whole
        if self._cut_in(last) and last in kept:
            place = kept[last]
            needs = max(needs, loop.pauses[last].length + max(0, loop.still) + _NOT_YET)
        elif loop.cut is not None:
            needs = max(needs, loop.still - loop.cut + _NOT_YET)
        if place >= len(pauses) or pauses[place].stage != SAVE:
            return
        at = pauses[place].at
        began = ran.pauses[place][1] if place < len(ran.pauses) else ran.end + at - free
        safe = began + round(needs * self._factors.get(SAVE, 1.0))
        if safe <= ran.end + max(0, loop.still):
            ran.durables.append((safe, self._position(at)))

    def _cut_in(self, i: int) -> bool:
        """Whether the failure came within a pause, and that was a save."""
        loop = self._loop
        if i < 0 or loop.pauses[i].stage != SAVE or loop.pauses[i].at < loop.free:
            return False
        return not any(durable.pause == i for durable in loop.durables)
