"""Ask the process of this container whether it is healthy: GET /healthz, or the path given. Exit code 0 if it says so.

The address is that of ETTWATCH_WEB, asked on loopback. There is no curl in the image, and nothing here needs a package.
"""

import os
import sys
import urllib.error
import urllib.request

WORKER = "127.0.0.1:9464"
SECONDS = 4.0


def main(path: str) -> int:
    """Return 0 if the answer is 200, else 1 with the reason on stderr."""
    address = os.environ.get("ETTWATCH_WEB") or WORKER
    if address == "off":
        return 0
    port = address.rpartition(":")[2]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS):
            return 0
    except urllib.error.HTTPError as error:
        print(f"{path}: {error.code} {error.read(200).decode(errors='replace').strip()}", file=sys.stderr)
    except OSError as error:
        print(f"{path}: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or ["/healthz"]))
