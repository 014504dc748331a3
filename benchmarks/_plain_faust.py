"""A plain Faust agent, as its tutorial has it: decode each record, count in a table, one write for each.

usage: _plain_faust.py BOOTSTRAP TOPIC RECORDS PARTITIONS [--bare]
"""

import asyncio
import os
import sys
import tempfile
import time
from typing import Any, Final

import faust

_MOST_S: Final = 600


def main() -> None:
    bootstrap, topic, records, partitions, *options = sys.argv[1:]
    bare = "--bare" in options
    app = faust.App(
        f"plain-{os.getpid()}",
        broker=f"kafka://{bootstrap}",
        store="memory://",
        consumer_auto_offset_reset="earliest",
        topic_partitions=int(partitions),
        topic_disable_leader=True,
        broker_max_poll_records=500,
        datadir=tempfile.gettempdir(),
        web_enabled=False,
    )
    counts = app.Table("counts", partitions=int(partitions), key_type=bytes, value_type=bytes)
    seen = 0
    begun = 0.0

    async def count(stream: Any) -> None:
        nonlocal seen, begun
        async for event in stream.events():
            begun = begun or time.perf_counter()
            if not bare:
                counts[event.key] = str(event.value["ts"]).encode()
            seen += 1
            if seen == int(records):
                print("records_per_s", seen / (time.perf_counter() - begun), flush=True)
                os._exit(0)

    # As JSON Faust decodes by itself.
    serializer = "raw" if bare else "json"
    app.agent(app.topic(topic, key_type=bytes, value_type=bytes, value_serializer=serializer), name="count")(count)
    asyncio.run(_run(app))


async def _run(app: Any) -> None:
    app.finalize()
    app.conf.web_enabled = False
    await app.start()
    await asyncio.sleep(_MOST_S)


if __name__ == "__main__":
    main()
