"""The rules of ownership in ClickHouse, where SQL asks for them: the view `owners`, replaced as a whole."""

import hashlib
import json
from typing import TYPE_CHECKING, Final

from ettwatch_core.ownership import Owners

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store

__all__ = ["push_owners"]

_TABLE: Final = "owners_log"
_COLUMNS: Final = ("loaded", "digest", "stage_prefix", "cluster", "model", "system", "team", "contact", "source")


def push_owners(store: "Store", owners: Owners, now: int) -> bool:
    """Have the view `owners` show these rules; return False where it does so already.

    All rows come in one insert under a time of their own, and the view shows those with the greatest: a reader sees
    the rules before or these, never a part. To be called as often as one likes.

    Args:
        store: The database.
        owners: The rules.
        now: The time (µs).

    Raises:
        StoreError: The database refused, or is away; the rules before it go on to count.
    """
    rules = sorted(
        (
            rule.stage,
            rule.cluster or "",
            rule.model or "",
            rule.owner.system or "",
            rule.owner.team,
            rule.owner.contact or "",
        )
        for rule in owners.rules
    )
    digest = hashlib.sha256(json.dumps(rules).encode()).hexdigest()[:32]
    newest = store.query(
        f"SELECT toUnixTimestamp64Micro(loaded), digest FROM {_TABLE} ORDER BY loaded DESC, digest DESC LIMIT 1"
    ).rows
    if newest and newest[0][1] == digest:
        return False
    # Who was here before may have had a faster clock: what is pushed later counts all the same.
    loaded = max([now, *(int(str(row[0])) + 1 for row in newest)])
    store.insert(
        _TABLE, _COLUMNS, [(loaded, digest, *rule, owners.source) for rule in rules], token=f"owners-{loaded}-{digest}"
    )
    return True
