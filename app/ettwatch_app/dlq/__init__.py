"""Dead letters: read them, choose among them, send them again, mark them as dealt with."""

from ettwatch_app.dlq.codes import LETTER_CODES
from ettwatch_app.dlq.courier import Courier, open_courier
from ettwatch_app.dlq.letters import Entry, Letters, MessageId, Place, Wanted, by_code, message_of, messages
from ettwatch_app.dlq.options import Choice, letter_options, read_choice
from ettwatch_app.dlq.route import Route, Router, job_key
from ettwatch_app.dlq.show import json_line, origin, print_codes, print_letters, raw_line
from ettwatch_app.dlq.topic import LetterTopic, Record, open_topic

__all__ = [
    "LETTER_CODES",
    "Choice",
    "Courier",
    "Entry",
    "LetterTopic",
    "Letters",
    "MessageId",
    "Place",
    "Record",
    "Route",
    "Router",
    "Wanted",
    "by_code",
    "job_key",
    "json_line",
    "letter_options",
    "message_of",
    "messages",
    "open_courier",
    "open_topic",
    "origin",
    "print_codes",
    "print_letters",
    "raw_line",
    "read_choice",
]
