"""What the sink cannot read goes to the topic of the dead letters."""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ettwatch_faust.fitting import fitting
from ettwatch_schemas import DeadLetter, letter_headers

if TYPE_CHECKING:
    from ettwatch_faust import Access

_LARGEST: int = 10 << 20


class LettersFailed(Exception):
    """Dead letters may not have arrived; all of them may be sent again."""


class Letters:
    """Sends dead letters. The connection is made with the first one.

    Args:
        access: How the brokers are reached.
        topic: The topic of the dead letters.
        timeout_s: How long the brokers may take, in seconds.
    """

    def __init__(self, access: "Access", topic: str, timeout_s: float = 30) -> None:
        self._access = access
        self._topic = topic
        self._timeout_s = timeout_s
        self._producer: Any = None

    def send(self, letters: Sequence[DeadLetter]) -> None:
        """Send dead letters; return when they are safe.

        Raises:
            LettersFailed: The brokers did not take all of them.
        """
        from kafka.errors import KafkaError

        try:
            producer = self._started()
            sent = [
                producer.send(self._topic, key=each.key, value=each.value, headers=letter_headers(each))
                for each in map(fitting, letters)
            ]
            for future in sent:
                future.get(timeout=self._timeout_s)
        except (KafkaError, OSError) as error:
            self.close()
            raise LettersFailed(
                f"cannot write to {self._topic}: {type(error).__name__}; is it there, and may this user write to it?"
            ) from None

    def close(self) -> None:
        """Let go of the connection."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(Exception):
                producer.close(timeout=2)

    def _started(self) -> Any:
        if self._producer is None:
            from kafka import KafkaProducer

            milliseconds = int(self._timeout_s * 1000)
            self._producer = KafkaProducer(
                **self._access.client(),
                acks="all",
                max_request_size=_LARGEST,
                max_block_ms=milliseconds,
                request_timeout_ms=min(10_000, milliseconds),
                delivery_timeout_ms=milliseconds,
            )
        return self._producer
