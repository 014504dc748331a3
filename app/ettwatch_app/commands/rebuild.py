"""`ettwatch rebuild`: every derived table anew from the raw events."""

from pathlib import Path

import click

from ettwatch_app.commands._meter import Bar
from ettwatch_app.commands._shared import data_option, ends_cleanly
from ettwatch_app.datafolder import locate, open_store
