"""A scenario: the fleet, what its owners did about it, what goes wrong on purpose, and how events travel."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from ettwatch_sim.delivery import IN_ORDER, Delivery
from ettwatch_sim.facts import Injected
from ettwatch_sim.life.config import Config, Factor, Length, Name, Positive, Share, explain, microseconds
from ettwatch_sim.life.dice import DAY
from ettwatch_sim.life.model import GPUS_A_HOST, Model
from ettwatch_sim.life.profiles import PROFILES
from ettwatch_sim.life.remedies import REMEDIES, Remedy


def _instant(value: object) -> object:
    if isinstance(value, str):
        try:
            return microseconds(value)
        except ValueError:
            raise ValueError(f"{value!r} is no time; write 2026-01-05 or 2026-01-05T08:00:00Z") from None
    return value


def _remedies(value: object) -> object:
    """`all` and `none` are short for lists."""
    if isinstance(value, str):
        if value not in ("all", "none"):
            raise ValueError(f"{value!r} is no list of remedies; write all, none, or a list of {', '.join(REMEDIES)}")
        return REMEDIES if value == "all" else ()
    return tuple(value) if isinstance(value, list) else value


_Moment: TypeAlias = Annotated[int, Field(ge=1_420_070_400_000_000, le=4_000_000_000_000_000)]
Instant: TypeAlias = Annotated[_Moment, BeforeValidator(_instant)]
Remedies: TypeAlias = Annotated[tuple[Remedy, ...], BeforeValidator(_remedies)]
Days: TypeAlias = Annotated[float, Field(ge=0, le=3_660)]


class Cluster(Config):
    """Hosts of eight GPUs.

    Attributes:
        name: Its name.
        gpus: How many GPUs; a multiple of 8.
        scheduler_s: Time to get hardware that is free, in seconds; from half of it to twice as much.
        storms_per_week: How often GPUs are taken back for others.
        storm_share: ... what share of them, at most.
        storm_h: ... and for how long, in hours (mean).
        slow_hosts: Share of hosts that are slow.
        slow_factor: How much longer their start-up takes. Their steps are slower by a fifth of that.
    """

    name: Name
    gpus: int = Field(default=512, ge=8, le=1_000_000, multiple_of=GPUS_A_HOST)
    scheduler_s: Length = 45
    storms_per_week: float = Field(default=1.0, ge=0, le=100)
    storm_share: Share = 0.6
    storm_h: float = Field(default=2.0, gt=0, le=1_000)
    slow_hosts: Share = 0.02
    slow_factor: float = Field(default=1.5, ge=1, le=20)


class Team(Config):
    """Who submits jobs.

    Attributes:
        name: Its name.
        models: Names of models: of the scenario, or of the profiles.
        jobs_per_day: How many jobs on a weekday.
        clusters: Where; empty is any.
        nightly: Share of its jobs that are submitted by a timer, every night alike, the others by people in the day.
        start_up: Its start-ups take this many times what its models' do.
        failures: Its jobs fail this many times as often as its models' do.
        remedies: What it has done; left out: what the whole fleet has.
    """

    name: Name
    models: tuple[Name, ...] = Field(min_length=1)
    jobs_per_day: float = Field(default=10, gt=0, le=100_000)
    clusters: tuple[Name, ...] = ()
    nightly: Share = 0.3
    start_up: Factor = 1.0
    failures: Factor = 1.0
    remedies: Remedies | None = None


class Injection(Config):
    """Something made worse (or better) on purpose, of known size, place and time.

    Attributes:
        name: What it is called in the ground truth.
        what: `stage`: times of a stage; `failures`: their rate; `cold_caches`: compiled code is not found;
            `saves`: times of checkpoints; `queue`: waits for hardware.
        factor: How many times as much; of `cold_caches`: the share of attempts that find nothing (at most 1).
        from_day: When it begins, in days after the begin of the scenario.
        to_day: When it ends; left out: never.
        stage: Of `stage`: a stage, or the first part of several; left out: all of the start-up.
        cause: Of `failures`: of this cause only.
        team, model, cluster, host: Where; left out: everywhere. A host is `<cluster>-h<number>`, as in events.
    """

    name: Name
    what: Literal["stage", "failures", "cold_caches", "saves", "queue"]
    factor: Factor
    from_day: Days = 0
    to_day: Days | None = None
    stage: str | None = None
    cause: str | None = None
    team: Name | None = None
    model: Name | None = None
    cluster: Name | None = None
    host: Name | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.to_day is not None and self.to_day <= self.from_day:
            raise ValueError(f"to_day {self.to_day:g} is not after from_day {self.from_day:g}; give a later day")
        if self.what == "cold_caches" and self.factor > 1:
            raise ValueError(f"factor {self.factor:g} of cold_caches is a share; give a number up to 1")
        if self.stage is not None and self.what != "stage":
            raise ValueError(f"stage is of what: stage only, not of {self.what}; leave it out")
        if self.stage is not None and not self.stage.startswith(STAGES_TO_INJECT):
            raise ValueError(f"stage {self.stage!r} has no time of its own; give one of {', '.join(STAGES_TO_INJECT)}")
        if self.cause is not None and self.what != "failures":
            raise ValueError(f"cause is of what: failures only, not of {self.what}; leave it out")
        if self.host is not None and self.what != "stage":
            raise ValueError(f"host is of what: stage only, not of {self.what}; leave it out")
        return self


STAGES_TO_INJECT = (
    "hardware_setup",
    "trainer_init",
    "pt2_compilation",
    "wasted_training.evaluation",
    "wasted_training.checkpoint_save",
    "wasted_training.data_stall",
    "shutdown",
)


class Maintenance(Config):
    """Planned work on a cluster: GPUs are taken for some hours, and jobs there are preempted.

    Attributes:
        cluster: Where.
        day: When, in days after the begin of the scenario.
        hours: For how long.
        share: Of its GPUs.
    """

    cluster: Name
    day: Days
    hours: float = Field(default=4.0, gt=0, le=10_000)
    share: Share = 0.5


class Travel(Config):
    """How events arrive, as in `Delivery`, and how wrong clocks are.

    Attributes:
        jitter_s, late, late_s, doubled: See `Delivery`.
        skewed: Share of hosts whose clock is wrong.
        skew_s: By how much at most, before or after.
    """

    jitter_s: Length = 0
    late: Share = 0
    late_s: Length = 0
    doubled: Share = 0
    skewed: Share = 0
    skew_s: float = Field(default=0, ge=0, le=300)

    @property
    def delivery(self) -> Delivery:
        """The way of events."""
        if not (self.jitter_s or self.late or self.doubled):
            return IN_ORDER
        return Delivery(self.jitter_s, self.late, self.late_s, self.doubled)


class Scenario(Config):
    """A whole simulation.

    Attributes:
        days: For how long jobs are submitted. Those that run then go on to their end, unless `drain` is off.
        jobs: At most so many jobs; left out: no limit.
        begin: When, as a day or time in ISO 8601, or microseconds since the Unix epoch.
        clusters, models, teams: The fleet. A model may be one of the profiles by name and need not stand here.
        remedies: What the fleet has done: a list, `all`, or `none`.
        deploy_days: Days between two versions of a team's code, on average; each begins with nothing compiled.
        weekend: Jobs on a day of the weekend, as a share of those on a weekday.
        retries: How often an attempt is repeated that failed for reasons of the user's code or configuration.
        cancelled: Share of jobs that their owner stops.
        silent_deaths: Share of killed attempts whose end nobody tells.
        hang_timeout_s: After how long a hang is ended, in seconds.
        injections: What is made worse on purpose.
        maintenance: Planned work.
        travel: How events arrive.
        report_every_s: Longest silence of the loop; progress is told three times as often.
        ranks: How many ranks of a job tell their start-up, the slowest among them.
        drain: Whether jobs go on to their end after `days`; else everything stops there.
    """

    days: float = Field(default=7, gt=0, le=3_660)
    jobs: int | None = Field(default=None, ge=1)
    begin: Instant = 1_767_571_200_000_000
    clusters: tuple[Cluster, ...] = Field(min_length=1)
    models: tuple[Model, ...] = ()
    teams: tuple[Team, ...] = Field(min_length=1)
    remedies: Remedies = ()
    deploy_days: Positive = 5.0
    weekend: Share = 0.35
    retries: int = Field(default=2, ge=0, le=100)
    cancelled: Share = 0.03
    silent_deaths: Share = 0.1
    hang_timeout_s: float = Field(default=1_200.0, gt=0, le=604_800)
    injections: tuple[Injection, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()
    travel: Travel = Travel()
    report_every_s: float = Field(default=90, ge=3, le=3_600)
    ranks: int = Field(default=4, ge=1, le=16_384)
    drain: bool = True

    @property
    def end(self) -> int:
        """When the last job may be submitted, in microseconds."""
        return self.begin + int(self.days * DAY)

    def but(self, **fields: object) -> "Scenario":
        """Return this scenario with other fields, checked. Raises ScenarioError."""
        try:
            return Scenario.model_validate({name: getattr(self, name) for name in Scenario.model_fields} | fields)
        except ValidationError as error:
            raise explain(error, Scenario) from None

    def model(self, name: str) -> Model:
        """Return a model of the scenario, or a profile. Raises KeyError."""
        return next((each for each in self.models if each.name == name), None) or PROFILES[name]

    def injected(self) -> list[Injected]:
        """Return the ground truth: what was injected."""
        return [
            Injected(
                since=self.begin + int(each.from_day * DAY),
                until=None if each.to_day is None else self.begin + int(each.to_day * DAY),
                **each.model_dump(exclude={"from_day", "to_day"}),
            )
            for each in self.injections
        ]

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        problems = list(self._problems())
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        clusters = {each.name: each for each in self.clusters}
        models = {each.name for each in self.models} | set(PROFILES)
        teams = {each.name for each in self.teams}
        for what, parts in (("clusters", self.clusters), ("models", self.models), ("teams", self.teams)):
            names = [part.name for part in parts]
            for i, name in enumerate(names):
                if name in names[:i]:
                    yield f"{what}[{i}].name: {name} is there twice; give it another name"
        for i, team in enumerate(self.teams):
            yield from _unknown(f"teams[{i}].models", team.models, models)
            yield from _unknown(f"teams[{i}].clusters", team.clusters, set(clusters))
            for name in set(team.models) & models:
                room = [each.gpus for each in self.clusters if each.name in (team.clusters or clusters)]
                if room and self.model(name).hosts * GPUS_A_HOST > max(room):
                    yield (
                        f"teams[{i}].models: {name} needs {self.model(name).gpus} GPUs and no cluster of the team has "
                        f"more than {max(room)}; give a larger cluster"
                    )
        for i, each in enumerate(self.injections):
            place = f"injections[{i}]"
            yield from _unknown(f"{place}.team", (each.team,) if each.team else (), teams)
            yield from _unknown(f"{place}.model", (each.model,) if each.model else (), models)
            yield from _unknown(f"{place}.cluster", (each.cluster,) if each.cluster else (), set(clusters))
        for i, work in enumerate(self.maintenance):
            yield from _unknown(f"maintenance[{i}].cluster", (work.cluster,), set(clusters))


def _unknown(place: str, names: tuple[str, ...], known: set[str]) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{place}: {name} is not known; write one of {', '.join(sorted(known))}"
