// Figures over time: stacked bars, or a line. Drag (or Shift and the arrow keys) to choose a stretch and zoom to it.
import { useId, useState } from "preact/hooks";
import { clock, day, moment } from "../format";
import { named } from "../terms";
import { Table } from "../parts/table";
import { Frame, Legend } from "./frame";
import { ticks, timeTicks, useWidth } from "./scale";

export interface Spot {
  at_us: number;
  /** Of a stack: its parts by name. */
  parts?: Record<string, number>;
  /** Of a line: its value; null is a hole. */
  value?: number | null;
}

interface Props {
  name: string;
  spots: Spot[];
  keys?: string[];
  from_us: number;
  to_us: number;
  step_s: number;
  top?: number;
  text: (value: number) => string;
  unit: string;
  onRange?: (from: number, to: number) => void;
  height?: number;
}

const LEFT = 46;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;

export function OverTime(props: Props) {
  const { spots, from_us: from, to_us: to, keys } = props;
  const [box, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const [grip, setGrip] = useState<number | null>(null);
  const hint = useId();
  const step = props.step_s * 1e6;
  const height = props.height ?? 220;
  const wide = Math.max(width - LEFT - RIGHT, 10);
  const high = height - TOP - BOTTOM;
  const x = (us: number) => LEFT + ((us - from) / Math.max(to - from, 1)) * wide;
  const size = (spot: Spot) => (keys ? keys.reduce((sum, key) => sum + (spot.parts?.[key] ?? 0), 0) : (spot.value ?? 0));
  const marks = ticks(props.top ?? Math.max(...spots.map(size), 0));
  const top = props.top ?? marks.at(-1)!;
  const y = (value: number) => TOP + high - (value / top) * high;
  const nearest = (clientX: number, svg: Element) => {
    const us = from + ((clientX - svg.getBoundingClientRect().left - LEFT) / wide) * (to - from);
    let best = 0;
    spots.forEach((spot, index) => {
      if (Math.abs(spot.at_us + step / 2 - us) < Math.abs(spots[best]!.at_us + step / 2 - us)) best = index;
    });
    return best;
  };
  const chosen = grip !== null && at !== null && grip !== at ? [Math.min(grip, at), Math.max(grip, at)] as const : null;
  const finish = () => {
    if (chosen) props.onRange?.(spots[chosen[0]]!.at_us, spots[chosen[1]]!.at_us + step);
    setGrip(null);
  };
  const key = (event: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };
    if (event.key in moves) {
      event.preventDefault();
      if (event.shiftKey && grip === null) setGrip(at ?? 0);
      if (!event.shiftKey) setGrip(null);
      setAt(Math.max(0, Math.min(spots.length - 1, (at ?? (moves[event.key]! > 0 ? -1 : spots.length)) + moves[event.key]!)));
    } else if (event.key === "Enter") finish();
    else if (event.key === "Escape") { setGrip(null); setAt(null); }
  };
  const spot = at === null ? undefined : spots[at];
  const when = (us: number) => (props.step_s < 86_400 ? moment(us) : day(us));
  const told = spot
    ? `${when(spot.at_us)} UTC: ${keys ? `${props.text(size(spot))} ${props.unit}` : spot.value == null ? "no data" : props.text(spot.value)}`
    : "";

  const line = () => {
    const runs: string[] = [];
    let open = false;
    let last = 0;
    for (const one of spots) {
      if (one.value == null) { open = false; continue; }
      if (open && one.at_us - last > step * 1.5) open = false;
      runs.push(`${open ? "L" : "M"}${x(one.at_us + step / 2).toFixed(1)},${y(one.value).toFixed(1)}${open ? "" : "h0.01"}`);
      open = true;
      last = one.at_us;
    }
    return runs.join("");
  };

  const bar = Math.max((step / Math.max(to - from, 1)) * wide, 1);
  const inset = bar > 5 ? 1 : 0;
  return (
    <Frame
      name={props.name}
      legend={keys ? <Legend keys={keys} /> : undefined}
      tools={props.onRange ? <span id={hint} class="hint">Drag to zoom; or arrows, Shift and arrows, Enter.</span> : undefined}
      table={() => (
        <Table label={props.name} rows={spots} keyOf={(row) => row.at_us} columns={[
          { name: "at", head: "from (UTC)", first: true, cell: (row) => when(row.at_us) },
          ...(keys ?? []).map((one) => ({ name: one, head: named(one), number: true, cell: (row: Spot) => props.text(row.parts?.[one] ?? 0) })),
          { name: "sum", head: props.unit, number: true, cell: (row: Spot) => (keys ? props.text(size(row)) : row.value == null ? "–" : props.text(row.value)) },
        ]} />
      )}
    >
      <div class="plot" ref={box}>
        {width > 0 ? (
          <svg class="chart" width={width} height={height} role="application" tabIndex={0}
            aria-roledescription="chart" aria-label={`${props.name}. ${spots.length} points; arrow keys read them out, or choose "As a table".`}
            aria-describedby={props.onRange ? hint : undefined}
            onKeyDown={key} onBlur={() => { setAt(null); setGrip(null); }}
            onPointerMove={(event) => { if (spots.length) setAt(nearest(event.clientX, event.currentTarget)); }}
            onPointerDown={(event) => {
              if (!props.onRange || event.pointerType === "touch" || !spots.length) return;
              event.currentTarget.setPointerCapture(event.pointerId);
              setGrip(nearest(event.clientX, event.currentTarget));
            }}
            onPointerUp={finish} onPointerLeave={() => { if (grip === null) setAt(null); }}
          >
            {marks.map((mark) => (
              <g key={mark}>
                <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y(mark)} y2={y(mark)} />
                <text class="tick" x={LEFT - 6} y={y(mark) + 4} text-anchor="end">{Number(mark.toPrecision(6)).toLocaleString("en-US")}{props.top === 100 ? " %" : ""}</text>
              </g>
            ))}
            {timeTicks(from, to, Math.max(2, Math.floor(wide / 80))).map((tick) => (
              <g key={tick.at}>
                <line class="grid-end" x1={x(tick.at)} x2={x(tick.at)} y1={height - BOTTOM} y2={height - BOTTOM + 4} />
                <text class="tick" x={Math.min(x(tick.at), width - 20)} y={height - 6} text-anchor="middle">{tick.text}</text>
              </g>
            ))}
            {chosen ? (
              <rect class="chosen" x={x(spots[chosen[0]]!.at_us)} width={x(spots[chosen[1]]!.at_us + step) - x(spots[chosen[0]]!.at_us)} y={TOP} height={high} />
            ) : null}
            {keys
              ? spots.map((one) => {
                let below = 0;
                return (
                  <g key={one.at_us}>
                    {keys.map((part) => {
                      const value = one.parts?.[part] ?? 0;
                      if (value <= 0) return null;
                      below += value;
                      return (
                        <rect key={part} class={`fill-${part}`} x={x(one.at_us) + inset / 2} width={Math.max(bar - inset, 0.5)}
                          y={y(below)} height={Math.max(y(below - value) - y(below), 0)} />
                      );
                    })}
                  </g>
                );
              })
              : <path class="line" d={line()} />}
            {spot ? <line class="cursor" x1={x(spot.at_us + step / 2)} x2={x(spot.at_us + step / 2)} y1={TOP} y2={TOP + high} /> : null}
            {spot && !keys && spot.value != null ? <circle class="spot" r="4" cx={x(spot.at_us + step / 2)} cy={y(spot.value)} /> : null}
          </svg>
        ) : <div class="unmeasured" />}
        <div class="readout" aria-live="polite">
          {spot ? (
            <>
              <strong>{told}</strong>
              {keys ? keys.filter((part) => (spot.parts?.[part] ?? 0) > 0).map((part) => (
                <span key={part} class="readout-part"><span class={`dot bg-${part}`} aria-hidden="true" /> {named(part)} {props.text(spot.parts![part]!)}</span>
              )) : null}
            </>
          ) : <span class="hint">{spots.length ? `${when(from)} to ${props.step_s < 86_400 ? `${day(to)}, ${clock(to)}` : day(to)} UTC, by ${props.step_s >= 604_800 ? "week" : props.step_s >= 86_400 ? "day" : "hour"}` : ""}</span>}
        </div>
      </div>
    </Frame>
  );
}
