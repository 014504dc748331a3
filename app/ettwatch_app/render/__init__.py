"""From values to what a person reads in a terminal."""

from ettwatch_app.render.advice import write_advice
from ettwatch_app.render.advised import advice_lines, what_if_lines
from ettwatch_app.render.answer import print_table, write_csv, write_json
from ettwatch_app.render.console import plain_table, show, stderr_console, stdout_console
from ettwatch_app.render.fitting import fitted
from ettwatch_app.render.fleet import jobs_table, print_fleet
from ettwatch_app.render.job import print_job
from ettwatch_app.render.segments import segments_table
from ettwatch_app.render.text import clean, count, duration
from ettwatch_app.render.views import FleetView, JobView, Mark, Order

__all__ = [
    "FleetView",
    "JobView",
    "Mark",
    "Order",
    "advice_lines",
    "clean",
    "count",
    "duration",
    "fitted",
    "jobs_table",
    "plain_table",
    "print_fleet",
    "print_job",
    "print_table",
    "segments_table",
    "show",
    "stderr_console",
    "stdout_console",
    "what_if_lines",
    "write_advice",
    "write_csv",
    "write_json",
]
