"""The timeline of a job, drawn in characters: a letter for each component, colours where there are any."""

from rich.console import Console
from rich.text import Text

from ettwatch_app.render.lanes import MARKS, Lane, axis, lanes, ticks
from ettwatch_app.render.palette import LOOKS, ORDER
from ettwatch_app.render.views import JobView

_MOST_LANES = 24
_EDGE_LANES = 8


def timeline(view: JobView, console: Console) -> list[Text]:
    """Draw a job as wide as the console: the axis, one lane for each attempt, and what the signs mean."""
    summary = view.summary
    drawn = lanes(view.segments, view.attempts, view.marks, summary.t0, summary.t1, _columns(view, console.width))
    margin = _margin(view)
    columns = _columns(view, console.width)
    labels, line = axis(ticks(summary.t1 - summary.t0, columns), columns)
    out = [Text(" " * margin + labels, style="dim"), Text(" " * margin + line, style="dim")]
    left_out = max(0, len(drawn) - _MOST_LANES)
    kept = drawn if not left_out else [*drawn[:_EDGE_LANES], *drawn[_EDGE_LANES + left_out :]]
    colourless = console.color_system is None or console.no_color
    for place, lane in enumerate(kept):
        if left_out and place == _EDGE_LANES:
            out.append(Text(" " * margin + f"... {left_out:,} attempts are not drawn ...", style="dim"))
        out.append(_lane(lane, margin, colourless))
        if any(sign != " " for sign in lane.marks):
            out.append(Text(" " * margin + "".join(lane.marks).rstrip()))
    signs = {sign for lane in kept for sign in lane.marks} - {" "}
    return out + _legend(signs, margin, console.width, colourless)


def _margin(view: JobView) -> int:
    return 2 + max((len(str(part.attempt)) for part in view.segments), default=1)


def _columns(view: JobView, width: int) -> int:
    return max(20, width - _margin(view))


def _lane(lane: Lane, margin: int, colourless: bool) -> Text:
    text = Text(f"{f'#{lane.attempt}':>{margin - 1}} ", style="bold")
    before = None
    for component in lane.cells:
        if component is None:
            text.append(" ")
        elif colourless:
            text.append(LOOKS[component].letter, style="not bold")
        else:
            # On a coloured ground a letter at the beginning of each stretch is enough.
            letter = LOOKS[component].letter if component != before else " "
            text.append(letter, style=f"not bold {LOOKS[component].block}")
        before = component
    text.rstrip()
    return text


def _legend(signs: set[str], margin: int, width: int, colourless: bool) -> list[Text]:
    entries = [
        Text.assemble(
            (LOOKS[name].letter, "" if colourless else LOOKS[name].block), f" {name.replace('_training', '')}"
        )
        for name in ORDER
    ]
    entries += [Text(f"{sign} {meaning}") for sign, meaning in MARKS.items() if sign in signs]
    lines = [Text(" " * margin)]
    for entry in entries:
        if lines[-1].cell_len > margin and lines[-1].cell_len + 2 + entry.cell_len > width:
            lines.append(Text(" " * margin))
        elif lines[-1].cell_len > margin:
            lines[-1].append("  ")
        lines[-1].append_text(entry)
    return lines
