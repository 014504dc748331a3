"""The sum behind a gain, in lines whose figures add up as they are shown."""

from typing import Final

from ettwatch_monitor.advice.amounts import amount, unit_of
from ettwatch_monitor.advice.entry import Sum

_LEAST_WEEKS: Final = 0.1
"""From this many weeks on a week is made up from them."""


def arithmetic(sum_: Sum, weeks: float, whose: str) -> tuple[str, ...]:
    """Return the lines of a sum.

    Args:
        sum_: Of what.
        weeks: How long the range is.
        whose: Who lost it, in words.
    """
    # What is shown is added up from rounded figures: whoever checks it with a pencil must come to the same.
    unit = unit_of(max(sum_.lost_before, sum_.gpu_h))
    lost, back = unit.of(sum_.lost_before), unit.of(sum_.gpu_h)
    less = round(lost - unit.of(sum_.lost_after), 1)
    faster = round(back - less, 1)
    if abs(sum_.faster * unit.per_hour) < 0.1 or abs(faster) < 0.05:
        less, faster = back, 0.0
    lines = [f"replayed as it was, {whose} lost {lost:,.1f} {unit.name}; with it {lost - less:,.1f}: {less:,.1f} less"]
    if faster:
        word, pace = ("fewer", "faster") if faster > 0 else ("more", "slower")
        lines.append(
            f"and the same training takes {abs(faster):,.1f} {word} effective {unit.name}, as {pace} attempts do it"
        )
        lines.append(f"{less:,.1f} {'+' if faster > 0 else '-'} {abs(faster):,.1f} = {back:,.1f} {unit.name} come back")
    share = "" if sum_.lost_pct is None else f"{sum_.lost_pct:.1f} % of what {whose} lost in this time; "
    week = amount(sum_.gpu_h / weeks)
    # A week that is made up from some minutes says nothing.
    lines.append(
        f"{share}{back:,.1f} {unit.name} in {weeks:,.2f} weeks are {week} a week"
        if weeks >= _LEAST_WEEKS
        else f"{share}{back:,.1f} {unit.name} in all"
    )
    if sum_.partly:
        jobs = "1 job lies" if sum_.partly == 1 else f"{sum_.partly:,} jobs lie"
        lines.append(f"{jobs} partly outside of this time: of such a job its share inside is counted")
    if abs(sum_.scale - 1) > 1e-6:
        lines.append(
            f"not all jobs were looked at: in all these figures those that were count {sum_.scale:,.2f} times, "
            "by their GPU time"
        )
    return tuple(lines)
