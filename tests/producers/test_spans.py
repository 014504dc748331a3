import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from ettwatch.spans import open_span
from ettwatch_schemas import PhaseEnded, PhaseStarted
from support.spooled import Recording, timeline


def spans(recording: Recording) -> dict[str, tuple[PhaseStarted, PhaseEnded]]:
    """Every phase by its name, with both ends."""
    starts = [event for event in recording.events("phase_started") if isinstance(event, PhaseStarted)]
    ends = {event.span: event for event in recording.events("phase_ended") if isinstance(event, PhaseEnded)}
    assert len(starts) == len(ends)
    assert len({event.phase for event in starts}) == len(starts)
    return {event.phase: (event, ends[event.span]) for event in starts}


def test_nested_phases_name_their_parent(recording: Recording) -> None:
    rec = recording.start()
    with rec.phase("trainer_init"):
        with rec.phase("trainer_init.a"), rec.phase("pt2_compilation.dynamo"):
            pass
        with rec.phase("trainer_init.b"):
            pass
    found = spans(recording)
    parents = {name: start.parent for name, (start, _) in found.items()}
    assert parents == {
        "trainer_init": None,
        "trainer_init.a": found["trainer_init"][0].span,
        "pt2_compilation.dynamo": found["trainer_init.a"][0].span,
        "trainer_init.b": found["trainer_init"][0].span,
    }
    assert all(start.ts <= end.ts for start, end in found.values())
    assert open_span() is None


def test_details_go_with_start_and_end(recording: Recording) -> None:
    rec = recording.start()
    with rec.phase("pt2_compilation.cache_load", attrs={"key": "k"}, background=True) as span:
        span.set(cache="hit", bytes=12)
    start, end = spans(recording)["pt2_compilation.cache_load"]
    assert (start.attrs, start.background, start.source) == ({"key": "k"}, True, "trainer")
    assert (end.attrs, end.outcome) == ({"cache": "hit", "bytes": 12}, "ok")


class Unprintable:
    def __str__(self) -> str:
        raise AssertionError("it was printed")

    __repr__ = __str__


def test_details_that_are_no_json_are_made_so(recording: Recording) -> None:
    rec = recording.start()
    odd = {
        "nan": float("nan"),
        "big": 2**70,
        "obj": Unprintable(),
        "list": [1, (2.5, None)],
        "half": "\ud800",
        "b": b"x",
    }
    with rec.phase("trainer_init", attrs=odd):
        pass
    start, _ = spans(recording)["trainer_init"]
    assert start.attrs == {
        "nan": "nan",
        "big": str(2**70),
        "obj": "<Unprintable>",
        "list": [1, [2.5, None]],
        "half": "?",
        "b": "<bytes>",
    }


def test_details_that_are_too_long_are_left_out(recording: Recording) -> None:
    rec = recording.start()
    with rec.phase("trainer_init", attrs={str(n): ["x" * 2000] * 100 for n in range(10)}):
        pass
    start, _ = spans(recording)["trainer_init"]
    assert start.attrs is not None
    assert set(start.attrs) == {"attrs_left_out_bytes"}


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()])
def test_an_exception_is_told_and_passes_on_untouched(recording: Recording, error: BaseException) -> None:
    rec = recording.start()
    with pytest.raises(type(error)) as caught, rec.phase("trainer_init"), rec.phase("trainer_init.a"):
        raise error
    assert caught.value is error
    assert caught.value.__context__ is None
    for _, end in spans(recording).values():
        assert (end.outcome, end.attrs) == ("error", {"error": type(error).__name__})
    assert open_span() is None


def test_functions_are_decorated(recording: Recording) -> None:
    rec = recording.start()

    @rec.phase("trainer_init.a")
    def depth(n: int) -> int:
        """Count down."""
        return depth(n - 1) + 1 if n else 0

    assert depth(2) == 2
    assert (depth.__name__, depth.__doc__) == ("depth", "Count down.")
    starts = [event for event in recording.events("phase_started") if isinstance(event, PhaseStarted)]
    assert [event.parent for event in starts] == [None, starts[0].span, starts[1].span]
    assert len(recording.events("phase_ended")) == 3


def test_one_phase_object_may_be_entered_again_and_within_itself(recording: Recording) -> None:
    phase = recording.start().phase("trainer_init.a")
    with phase as outer, phase as inner:
        assert outer is not inner
    with phase:
        pass
    assert len({event.span for event in recording.events("phase_ended") if isinstance(event, PhaseEnded)}) == 3


def test_coroutines_keep_their_own_parents(recording: Recording) -> None:
    rec = recording.start()

    @rec.phase("trainer_init.a")
    async def first() -> None:
        await asyncio.sleep(0.001)
        async with rec.phase("trainer_init.a.inner"):
            await asyncio.sleep(0.001)

    @rec.phase("trainer_init.b")
    async def second() -> None:
        with rec.phase("trainer_init.b.inner"):
            await asyncio.sleep(0.003)

    async def both() -> None:
        with rec.phase("trainer_init"):
            await asyncio.gather(first(), second())

    asyncio.run(both())
    found = spans(recording)
    for name in ("trainer_init.a", "trainer_init.b"):
        assert found[name][0].parent == found["trainer_init"][0].span
        assert found[f"{name}.inner"][0].parent == found[name][0].span


def test_a_generator_is_one_phase_and_not_the_parent_of_its_users(recording: Recording) -> None:
    rec = recording.start()
    heard: list[object] = []

    @rec.phase("trainer_init.items")
    def items() -> Iterator[int]:
        with rec.phase("trainer_init.inside"):
            pass
        heard.append((yield 1))
        try:
            yield 2
        except ValueError as error:
            heard.append(error)
        yield 3

    generator = items()
    assert next(generator) == 1
    with rec.phase("trainer_init.user"):
        assert generator.send("word") == 2  # type: ignore[attr-defined]
    error = ValueError("thrown")
    assert generator.throw(error) == 3  # type: ignore[attr-defined]
    assert list(generator) == []
    assert heard == ["word", error]
    found = spans(recording)
    assert found["trainer_init.inside"][0].parent == found["trainer_init.items"][0].span
    assert found["trainer_init.user"][0].parent is None
    assert found["trainer_init.items"][1].outcome == "ok"


def test_a_generator_that_is_closed_ends_well_and_one_that_raises_does_not(recording: Recording) -> None:
    rec = recording.start()

    @rec.phase("trainer_init.closed")
    def closed() -> Iterator[int]:
        yield 1

    @rec.phase("trainer_init.broken")
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("mine")

    for _ in closed():
        break
    with pytest.raises(ValueError, match="mine"):
        list(broken())
    found = spans(recording)
    assert [found[f"trainer_init.{name}"][1].outcome for name in ("closed", "broken")] == ["ok", "error"]


def test_an_async_generator_is_one_phase(recording: Recording) -> None:
    rec = recording.start()

    @rec.phase("trainer_init.items")
    async def items() -> AsyncIterator[int]:
        for n in range(3):
            await asyncio.sleep(0)
            with rec.phase(f"trainer_init.inside{n}"):
                pass
            yield n

    async def use() -> list[int]:
        return [n async for n in items()]

    assert asyncio.run(use()) == [0, 1, 2]
    found = spans(recording)
    whole = found.pop("trainer_init.items")
    assert {start.parent for start, _ in found.values()} == {whole[0].span}
    assert whole[1].outcome == "ok"


def test_threads_have_no_parent_from_elsewhere(recording: Recording) -> None:
    rec = recording.start()

    def work(number: int) -> None:
        for n in range(20):
            with rec.phase(f"trainer_init.t{number}_{n}"), rec.phase(f"trainer_init.t{number}_{n}.inner"):
                pass

    with rec.phase("trainer_init"):
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = spans(recording)
    assert len(found) == 1 + 8 * 20 * 2
    for name, (start, _) in found.items():
        assert start.parent == (found[name.removesuffix(".inner")][0].span if name.endswith(".inner") else None)


def test_a_span_that_has_ended_is_nobodys_parent(recording: Recording) -> None:
    rec = recording.start()

    async def later() -> None:
        await asyncio.sleep(0.01)
        with rec.phase("trainer_init.late"):
            pass

    async def use() -> None:
        with rec.phase("trainer_init"), rec.phase("trainer_init.short"):
            task = asyncio.create_task(later())
        await task

    asyncio.run(use())
    assert spans(recording)["trainer_init.late"][0].parent is None


def test_two_recorders_do_not_mix_their_spans(recording: Recording) -> None:
    one, two = recording.start(), recording.start()
    with one.phase("trainer_init.one"), two.phase("trainer_init.two"), one.phase("trainer_init.one.inner"):
        pass
    found = spans(recording)
    assert found["trainer_init.two"][0].parent is None
    assert found["trainer_init.one.inner"][0].parent == found["trainer_init.one"][0].span


@pytest.mark.parametrize("name", ["evaluation", "Trainer_Init", "trainer_init..x", "", None, 7, "effective_training"])
def test_a_name_that_is_no_phase_is_warned_of_and_the_block_runs(
    recording: Recording, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    rec = recording.start()
    ran = 0
    for _ in range(3):
        with rec.phase(name) as span:
            span.set(x=1)
            ran += 1
    assert ran == 3
    assert not recording.events("phase_started", "phase_ended")
    assert len(caplog.records) == 1
    assert repr(name) in caplog.text
    assert "wasted_training" in caplog.text


def test_the_core_charges_what_the_recorder_tells(recording: Recording) -> None:
    rec = recording.start()
    with rec.phase("trainer_init.a"), rec.phase("pt2_compilation.inductor"):
        pass
    rec.end()
    stages = {segment.stage for segment in timeline(recording.events()).segments}
    assert "pt2_compilation.inductor" in stages
