"""The page of the monitor: files that are built from `monitor/web` and shipped as they are."""

from pathlib import Path
from typing import Final

__all__ = ["ASSETS"]

ASSETS: Final = Path(__file__).with_name("static")
"""The folder of the built files: `index.html`, and what it loads from `/static/`."""
