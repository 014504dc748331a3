"""Who looks at the live page."""

import contextlib
import http.client
import threading


def watching(place: str, pieces: list[bytes]) -> threading.Thread:
    """A viewer, who reads what comes until the stream ends."""
    connection = http.client.HTTPConnection(place, timeout=60)
    connection.request("GET", "/api/v1/live")
    answer = connection.getresponse()

    def read() -> None:
        with contextlib.closing(connection), answer:
            pieces.extend(iter(lambda: answer.read1(65_536), b""))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread
