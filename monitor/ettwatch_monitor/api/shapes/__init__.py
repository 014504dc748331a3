"""What the API answers, as models: the one place where its shapes stand.

Times are µs since the Unix epoch (`…_us`), spans are seconds (`…_s`), amounts are GPU-hours (`…_gpu_h`), shares are in
percent (`…_pct`).
"""

from ettwatch_monitor.api.shapes.alerts import AlertRow, Alerts, SilenceBody, SilenceRow
from ettwatch_monitor.api.shapes.base import Problem, Shape, Window
from ettwatch_monitor.api.shapes.fleet import Figures, Fleet, Group, OwnerOf, Point, Series, StageLoss
from ettwatch_monitor.api.shapes.jobs import (
    AttemptRow,
    JobDetail,
    JobPage,
    JobRow,
    Mark,
    PhaseRow,
    Seg,
    StartRow,
    Timeline,
    UsualStart,
)
from ettwatch_monitor.api.shapes.service import Live, LoginBody, Me, SqlAnswer, SqlBody, SqlColumn
from ettwatch_monitor.api.shapes.views import Compare, Difference, OwnerView, Side, TeamView

__all__ = [
    "AlertRow",
    "Alerts",
    "AttemptRow",
    "Compare",
    "Difference",
    "Figures",
    "Fleet",
    "Group",
    "JobDetail",
    "JobPage",
    "JobRow",
    "Live",
    "LoginBody",
    "Mark",
    "Me",
    "OwnerOf",
    "OwnerView",
    "PhaseRow",
    "Point",
    "Problem",
    "Seg",
    "Series",
    "Shape",
    "Side",
    "SilenceBody",
    "SilenceRow",
    "SqlAnswer",
    "SqlBody",
    "SqlColumn",
    "StageLoss",
    "StartRow",
    "TeamView",
    "Timeline",
    "UsualStart",
    "Window",
]
