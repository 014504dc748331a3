"""What random jobs look like on the whole."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Limits and shares of random jobs. Times are in seconds, but for `begin`.

    Attributes:
        begin: When the first job is submitted, in microseconds since the Unix epoch (default 2026-01-01).
        spacing_s: Mean time between two jobs.
        attempts: The most attempts of a job.
        ranks: The most ranks that speak.
        loop_s: The longest training loop of an attempt.
        report_every_s: Time between two `progress` events of a rank.
        odd: Share of jobs with things that no sound producer tells: lost events, spans that end before they start,
            attempts that overlap, progress after the end, counters that are reset, one id with two contents.
    """

    begin: int = 1_767_225_600_000_000
    spacing_s: float = 60.0
    attempts: int = 4
    ranks: int = 4
    loop_s: float = 900.0
    report_every_s: float = 15.0
    odd: float = 0.3

    def __post_init__(self) -> None:
        if min(self.attempts, self.ranks) < 1 or min(self.spacing_s, self.loop_s, self.report_every_s) <= 0:
            raise ValueError("attempts and ranks begin at 1, times are above 0")
        if not 0 <= self.odd <= 1:
            raise ValueError(f"odd is a share, from 0 to 1, not {self.odd}")
