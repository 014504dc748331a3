"""The words of the wire that the recorder needs: components, outcomes, causes, limits.

They are those of `ettwatch_schemas`, repeated because importing its models would cost a trainer a tenth of a
second; a test keeps the two equal.
"""

import re
from typing import Final

COMPONENTS: Final = (
    "scheduling",
    "hardware_setup",
    "trainer_init",
    "pt2_compilation",
    "wasted_training",
    "shutdown",
)
OUTCOMES: Final = ("succeeded", "failed", "preempted", "cancelled")
CAUSES: Final = (
    "hardware",
    "network",
    "storage",
    "host_memory",
    "gpu_memory",
    "timeout",
    "dependency",
    "maintenance",
    "capacity",
    "user_code",
    "config",
    "unknown",
)

MAX_JOB_CHARS: Final = 1024
MAX_PHASE_CHARS: Final = 200
MAX_NAME_CHARS: Final = 512
MAX_COUNT: Final = 2**31 - 1
MAX_AMOUNT: Final = 2**63 - 1
MIN_EXIT_CODE: Final = -(2**31)
MAX_EXIT_CODE: Final = 2**32 - 1
MAX_REPORT_EVERY_S: Final = 31_536_000

_phase = re.compile(rf"({'|'.join(COMPONENTS)})(\.[a-z0-9_]+)*").fullmatch
_no_slug = re.compile(r"[^A-Za-z0-9_-]+")


_known: set[str] = set()
"""Names that were found to be phases: most come again and again."""


def is_phase(name: object) -> bool:
    """Tell whether `name` may be sent as a phase: a component, or a dotted sub-stage of one in lower case."""
    if type(name) is str and name in _known:
        return True
    good = isinstance(name, str) and len(name) <= MAX_PHASE_CHARS and _phase(name) is not None
    if good and type(name) is str and len(_known) < 1000:
        _known.add(name)
    return good


def slug(text: str, limit: int) -> str:
    """Return `text` as a part of a file name: ASCII letters, digits, `_` and `-`, at most `limit` of them."""
    return _no_slug.sub("-", text).strip("-")[:limit] or "x"
