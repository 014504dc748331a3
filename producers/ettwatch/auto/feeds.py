"""What the batches of data loaders tell: the first batch, waits in the loop, and evaluations between the steps."""

import weakref
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, Final

from ettwatch.auto.session import Session
from ettwatch.auto.steps import Steps
from ettwatch.log import trouble
from ettwatch.spans import Span, open_span

BATCHES_WITHOUT_STEP: Final = 64
"""After so many batches for training and no step of an optimizer, batches count as steps."""


class Feed:
    """One data loader: whether it feeds the training, and what it gave since the last step."""

    __slots__ = ("__weakref__", "first_ns", "given", "trains")

    def __init__(self) -> None:
        self.trains = False
        self.given = 0
        """Batches since the last step."""
        self.first_ns = 0


class Feeds:
    """All loaders of this process. What it is told of comes from the main thread."""

    def __init__(self, session: Session, steps: Steps, grad_enabled: Callable[[], bool]) -> None:
        self._session = session
        self._steps = steps
        self._grad_enabled = grad_enabled
        self._feeds: weakref.WeakKeyDictionary[Any, Feed] = weakref.WeakKeyDictionary()
        self._asked: list[Feed] = []
        """Feeds that gave batches since the last step and are not known to train."""
        self._evaluation: Span | None = None
        self._evaluates: Feed | None = None
        self._trained = False

    def of(self, loader: Any) -> Feed:
        """Return the feed of a loader."""
        feed = self._feeds.get(loader)
        if feed is None:
            feed = self._feeds[loader] = Feed()
        return feed

    def opened(self, feed: Feed, since_ns: int) -> None:
        """An iteration began, which took since `since_ns`: to start its workers again, in the loop, is a wait."""
        loop = self._session.loop
        counts = loop is not None and loop.open and self._session.driven is not None
        if loop is not None and counts and feed.trains and self._evaluation is None and open_span() is None:
            loop.waited += monotonic_ns() - since_ns

    def waits(self, feed: Feed, begins: bool) -> tuple[Span | None, int]:
        """A batch is asked for, the first of an iteration if `begins`.

        Return the phase that the wait is, None for none, and since when it counts as a wait of the loop, 0 if not.
        """
        loop = self._session.loop
        if loop is None:
            return None, 0
        if not loop.open:
            if self._steps.by_batch or not begins:
                return None, 0
            return self._session.span("trainer_init.get_first_batch_data"), 0
        if self._session.driven is None:
            return None, 0
        if feed.trains:
            if self._evaluation is not None:
                self._end_evaluation()
            if self._steps.by_batch:
                self._steps.batches_done()
        elif self._evaluation is None and (feed.given or not self._grad_enabled()):
            self._evaluation, self._evaluates = self._session.span("wasted_training.evaluation"), feed
            if self._evaluation is not None:
                self._evaluation.enter()  # a compilation in it is a part of it
        if self._evaluation is not None or open_span() is not None:
            return None, 0
        loop.waiting = now = monotonic_ns()
        return None, now

    def came(self, feed: Feed, since_ns: int) -> None:
        """The batch is there. `since_ns`: as `waits` returned it."""
        now = monotonic_ns()
        loop = self._session.loop
        if loop is None:
            return
        if since_ns:
            loop.waiting = 0
            loop.waited += now - since_ns
        if not loop.open:
            self._before_the_loop(feed, now)
        elif not feed.trains:
            if self._grad_enabled() and feed not in self._asked:
                self._asked.append(feed)
            feed.given += 1

    def _before_the_loop(self, feed: Feed, now_ns: int) -> None:
        if not self._grad_enabled() or self._session.driven is None:
            return
        self._session.batch_ns = now_ns
        self._asked = [feed]
        feed.first_ns = feed.first_ns or now_ns
        feed.given += 1
        if feed.given > BATCHES_WITHOUT_STEP and not self._steps.count:
            feed.trains = True
            self._steps.batches_done(feed.given - 1, feed.first_ns)

    def ended(self, feed: Feed) -> None:
        """The loader has no more batches in this iteration."""
        if self._trained and not feed.trains:
            self._forget(feed)
        if feed is self._evaluates:
            self._end_evaluation()

    def stepped(self) -> None:
        """A step was done: who gave batches for it feeds the training. Raises nothing."""
        self._trained = True
        if self._asked:
            for feed in self._asked:
                feed.trains, feed.given = True, 0
            self._asked = []
        if self._evaluation is not None:
            self._end_evaluation()

    def _forget(self, feed: Feed) -> None:
        feed.given = 0
        if feed in self._asked:
            self._asked.remove(feed)

    def _end_evaluation(self) -> None:
        span, self._evaluation = self._evaluation, None
        feed, self._evaluates = self._evaluates, None
        if feed is not None:
            self._forget(feed)
        if span is not None:
            span.leave()
            span.end()


class Watched:
    """An iterator of a data loader, in whose place it stands: it is whatever that is, and its waits are seen."""

    def __init__(self, iterator: Any, feeds: Feeds, feed: Feed, is_main: Callable[[], bool]) -> None:
        self.__dict__.update(_ettwatch=(iterator, feeds, feed, is_main), _ettwatch_begins=True)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._ettwatch[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_ettwatch"][0], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_ettwatch"][0], name, value)

    def __iter__(self) -> "Watched":
        return self

    def __len__(self) -> int:
        return len(self._ettwatch[0])

    def __next__(self) -> Any:
        iterator, feeds, feed, is_main = self._ettwatch
        if not is_main():
            return next(iterator)
        span, since_ns = None, 0
        try:
            span, since_ns = feeds.waits(feed, self._ettwatch_begins)
            self.__dict__["_ettwatch_begins"] = False
        except Exception as error:
            trouble("waiting for a batch", error)
        try:
            batch = next(iterator)
        except BaseException as error:
            _over(feeds, feed, span, since_ns, error)
            raise
        try:
            if span is not None:
                span.end()
            feeds.came(feed, since_ns)
        except Exception as error:
            trouble("waiting for a batch", error)
        return batch


def _over(feeds: Feeds, feed: Feed, span: Span | None, since_ns: int, error: BaseException) -> None:
    try:
        loop = feeds._session.loop
        if since_ns and loop is not None:
            loop.waiting = 0
        if span is not None:
            span.end(None if isinstance(error, StopIteration) else error)
        if isinstance(error, StopIteration):
            feeds.ended(feed)
    except Exception as trouble_:
        trouble("the end of a data loader", trouble_)
