"""SQL, what happens live, who asks, advice."""

from pydantic import Field

from ettwatch_monitor.api.shapes.base import Shape
from ettwatch_monitor.api.shapes.fleet import Figures
from ettwatch_monitor.api.shapes.jobs import JobRow

__all__ = ["Live", "LoginBody", "Me", "SqlAnswer", "SqlBody", "SqlColumn"]


class SqlBody(Shape):
    """POST /sql."""

    query: str = Field(min_length=1, max_length=20_000)


class SqlColumn(Shape):
    """A column of an answer."""

    name: str
    type: str = Field(description="ClickHouse's name of it")


class SqlAnswer(Shape):
    """What a query gave. Times are ISO 8601 texts, whole numbers beyond 2^53 are texts."""

    columns: list[SqlColumn]
    rows: list[list[object]]
    truncated: bool = Field(description="there are more rows than may be answered")
    elapsed_s: float


class Live(Shape):
    """GET /live (server-sent events): the data of each event `live`, every few seconds, and at once on connecting."""

    number: int = Field(description="rises; also the id of the event")
    at_us: int
    statuses: dict[str, int] = Field(description="jobs by status, of those that are not over")
    firing: int = Field(description="alerts that fire")
    day: Figures | None = Field(description="the last 24 hours; null where nothing was")
    jobs: list[JobRow] = Field(description="jobs that are not over, the largest first, at most 50")
    changed: int = Field(description="rises when the rollups did: ask for the figures of the page again")
    stale: str | None = Field(description="why the figures are old; null where they are not")


class Me(Shape):
    """GET /me: who asks, what they may do, and what there is."""

    user: str
    role: str = Field(description="viewer or operator")
    auth: str = Field(description="none, token, session or proxy")
    csrf: str | None = Field(description="to be sent as X-CSRF-Token with every POST and DELETE; null where not needed")
    can_silence: bool
    can_sql: bool
    can_advise: bool
    demo: bool
    version: str
    now_us: int
    first_us: int | None = Field(description="begin of the first hour of which there is anything")
    last_us: int | None = Field(description="end of the last such hour")
    teams: list[str]
    models: list[str]
    clusters: list[str]
    owners: list[str]


class LoginBody(Shape):
    """POST /login: a token for a cookie. DELETE /login ends it."""

    token: str = Field(min_length=1, max_length=500)
