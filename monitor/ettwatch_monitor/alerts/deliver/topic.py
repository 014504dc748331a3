"""The Kafka topic ett.alerts: every state of every alert, for programs."""

import contextlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ettwatch_monitor.alerts.deliver.channel import Plan, Refused, Unavailable
from ettwatch_monitor.alerts.deliver.message import Message, as_json

if TYPE_CHECKING:
    from ettwatch_faust import Access

__all__ = ["TopicChannel"]

_LARGEST: Final = 10 << 20


class TopicChannel:
    """Writes messages as JSON, the key of the alert as the key. The header `id` is the id of the message.

    Args:
        name: Of the channel.
        plan: What goes to it.
        access: How the brokers are reached.
        topic: Name of the topic.
        timeout_s: How long the brokers may take, in seconds.
    """

    def __init__(self, name: str, plan: Plan, access: "Access", topic: str, timeout_s: float = 10.0) -> None:
        self.name = name
        self.plan = plan
        self._access = access
        self._topic = topic
        self._timeout_s = timeout_s
        self._producer: Any = None

    def send(self, messages: Sequence[Message], now: int) -> None:
        """Write messages; return when all in-sync copies have them. Raises Unavailable or Refused."""
        from kafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

        try:
            producer = self._started()
            sent = [
                producer.send(
                    self._topic,
                    key=message.alert.key.encode(),
                    value=json.dumps(as_json(message), ensure_ascii=False).encode(),
                    headers=[("id", message.id.encode())],
                )
                for message in messages
            ]
            for future in sent:
                future.get(timeout=self._timeout_s)
        except (MessageSizeTooLargeError, RecordListTooLargeError):
            self.close()
            raise Refused(f"the message is too large for the topic {self._topic}") from None
        except (KafkaError, OSError) as error:
            self.close()
            where = ", ".join(self._access.brokers)
            raise Unavailable(
                f"cannot write to {self._topic} at {where}: {type(error).__name__}; is it there (ettwatch topics "
                "create), and may this user write to it?"
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

            usual, clients = KafkaProducer.DEFAULT_CONFIG["kafka_client"], []

            def client(**settings: Any) -> Any:
                clients.append(usual(**settings))
                return clients[-1]

            milliseconds = int(self._timeout_s * 1000)
            try:
                self._producer = KafkaProducer(
                    **self._access.client(),
                    kafka_client=client,
                    acks="all",
                    max_request_size=_LARGEST,
                    bootstrap_timeout_ms=milliseconds,
                    max_block_ms=milliseconds,
                    request_timeout_ms=milliseconds,
                    delivery_timeout_ms=milliseconds,
                )
            except BaseException:
                # A producer that reaches no broker leaves its client open: in a long outage that is many.
                for each in clients:
                    with contextlib.suppress(Exception):
                        each.close()
                raise
        return self._producer
