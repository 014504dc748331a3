// A job's time: what each moment was charged to, the phases under it, and what happened. Zooms by drag, keys and buttons.
import { useId, useMemo, useState } from "preact/hooks";
import type { AttemptRow, Mark, PhaseRow, Seg, Timeline as Told } from "../types";
import { clock, moment, span } from "../format";
import { COMPONENTS, EFFECTIVE, named, shortly } from "../terms";
import { Stage } from "../parts/stage";
import { Table } from "../parts/table";
import { Term } from "../parts/term";
import { Frame, Legend } from "./frame";
import { byStage, charged, drawable, lanes } from "./lanes";
import { timeTicks, useWidth } from "./scale";

/** Who was last in a phase, where, and how long the others waited. */
function lastOf(row: PhaseRow): string {
  return `rank ${row.last_rank}${row.last_host ? ` (host ${row.last_host})` : ""} was last${row.behind_s > 0 ? `, ${span(row.behind_s)} behind` : ""}`;
}

interface Props {
  told: Told;
  attempts: AttemptRow[];
  from: number;
  to: number;
  onView: (from: number | null, to: number | null) => void;
}

const HEAD = 40;
const MAIN = 30;
const ROW = 20;
const SIGNS: Record<string, string> = { first_batch: "▲", checkpoint: "◆", failure: "✕", preemption: "✕", end: "■" };
const SIGN_NAMES: Record<string, string> = {
  first_batch: "first batch", checkpoint: "checkpoint safe", failure: "failure", preemption: "preemption", end: "end",
};

export function Timeline(props: Props) {
  const { told, from, to } = props;
  const [box, width] = useWidth();
  const [over, setOver] = useState<string | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const [at, setAt] = useState(-1);
  const hint = useId();
  const narrow = width < 640;
  const left = narrow ? 0 : Math.min(250, width * 0.22);
  const wide = Math.max(width - left - 8, 10);
  const rows = useMemo(() => lanes(told), [told]);
  const stages = useMemo(() => byStage(told.segments), [told]);
  const laneHigh = narrow ? ROW + 14 : ROW;
  const height = HEAD + MAIN + 10 + rows.length * laneHigh + 24;
  const x = (us: number) => left + ((us - from) / Math.max(to - from, 1)) * wide;
  const us = (clientX: number, svg: Element) => from + ((clientX - svg.getBoundingClientRect().left - left) / wide) * (to - from);
  const seen = told.segments.filter((one) => one.end_us > from && one.start_us < to);
  const drawn = useMemo(() => drawable(seen, (to - from) / wide / 2), [told, from, to, wide]);
  const cut = (a: number, b: number) => ({ x: Math.max(x(a), left), width: Math.max(Math.min(x(b), left + wide) - Math.max(x(a), left), 0.5) });

  const zoom = (factor: number, centre = (from + to) / 2) => {
    const a = Math.max(told.t0_us, Math.round(centre - (centre - from) * factor));
    const b = Math.min(told.t1_us, Math.round(centre + (to - centre) * factor));
    if (a <= told.t0_us && b >= told.t1_us) props.onView(null, null);
    else if (b - a >= 1_000) props.onView(a, b);
  };
  const pan = (share: number) => {
    const by = Math.max(told.t0_us - from, Math.min(told.t1_us - to, Math.round((to - from) * share)));
    if (by) props.onView(from + by, to + by);
  };
  const waited = (one: Seg) => {
    const row = rows.find((lane) => lane.phase === one.stage)?.rows.find((row) => row.behind_s > 0 && row.ranks > 1 && row.start_us < one.end_us && row.end_us > one.start_us);
    return row ? `; ${lastOf(row)}` : "";
  };
  const describe = (index: number) => {
    const one = told.segments[index];
    if (!one) return null;
    return `${named(one.stage)}: ${span((one.end_us - one.start_us) / 1e6)} from ${moment(one.start_us, true)} UTC, attempt ${one.attempt}, ${one.gpus} GPUs` + waited(one);
  };
  const keys = (event: KeyboardEvent) => {
    const acts: Record<string, () => void> = {
      ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
      "0": () => props.onView(null, null), Escape: () => setAt(-1),
      ArrowDown: () => setAt(Math.min(at + 1, told.segments.length - 1)), ArrowUp: () => setAt(Math.max(at - 1, 0)),
    };
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  const finish = () => {
    if (drag && Math.abs(x(drag[1]) - x(drag[0])) > 4) {
      const [a, b] = [Math.min(...drag), Math.max(...drag)];
      props.onView(Math.max(told.t0_us, Math.round(a)), Math.min(told.t1_us, Math.round(b)));
    }
    setDrag(null);
  };
  const marked = (event: Event) => (event.target as Element).closest<SVGElement>("[data-says]")?.dataset.says ?? null;
  const marks = told.marks.filter((mark) => mark.at_us >= from && mark.at_us <= to);
  // Checkpoints may come by the thousand: at most one sign every six pixels.
  const shown: Mark[] = [];
  let lastX = -Infinity;
  for (const mark of marks) {
    if (mark.kind === "checkpoint" && x(mark.at_us) - lastX < 6) continue;
    if (mark.kind === "checkpoint") lastX = x(mark.at_us);
    shown.push(mark);
  }
  const present = [EFFECTIVE, ...COMPONENTS].filter((key) => told.segments.some((one) => one.component === key));
  const full = from <= told.t0_us && to >= told.t1_us;

  return (
    <Frame
      name={`Timeline of ${told.job}`}
      legend={<Legend keys={present} more={
        <>
          <li><span class="dot hollow" aria-hidden="true" /> <Term of="hidden work">outlined: hidden work</Term></li>
          <li><span class="sign" aria-hidden="true">▲</span> first batch</li>
          <li><span class="sign" aria-hidden="true">◆</span> <Term of="checkpoint">checkpoint safe</Term></li>
          <li><span class="sign bad" aria-hidden="true">✕</span> failure</li>
          <li><span class="late" aria-hidden="true" /> <Term of="straggler">waited for the last rank</Term></li>
        </>
      } />}
      tools={(
        <>
          <div class="group" role="group" aria-label="Zoom of the timeline">
            <button type="button" onClick={() => zoom(0.5)} aria-label="Zoom in">+</button>
            <button type="button" onClick={() => zoom(2)} disabled={full} aria-label="Zoom out">−</button>
            <button type="button" onClick={() => pan(-0.5)} disabled={from <= told.t0_us} aria-label="Earlier">←</button>
            <button type="button" onClick={() => pan(0.5)} disabled={to >= told.t1_us} aria-label="Later">→</button>
            <button type="button" onClick={() => props.onView(null, null)} disabled={full}>Whole job</button>
          </div>
          <span id={hint} class="hint">Drag to zoom. Keys: + − 0, ← →; ↑ ↓ read stretch by stretch.</span>
        </>
      )}
      table={() => (
        <Table label={`Stretches of ${told.job}`} rows={seen.slice(0, 2_000)} keyOf={(row) => row.start_us} columns={[
          { name: "from", head: "from (UTC)", first: true, cell: (row) => moment(row.start_us, true) },
          { name: "for", head: "for", number: true, cell: (row) => span((row.end_us - row.start_us) / 1e6) },
          { name: "stage", head: "charged to", cell: (row) => <Stage of={row.stage} /> },
          { name: "attempt", head: "attempt", number: true, cell: (row) => row.attempt },
          { name: "gpus", head: "GPUs", number: true, cell: (row) => row.gpus },
        ]} />
      )}
    >
      <div class="plot" ref={box}>
        {width > 0 ? (
          <svg class="chart timeline" width={width} height={height} role="application" tabIndex={0} aria-roledescription="timeline"
            aria-label={`Timeline of job ${told.job}, ${span((to - from) / 1e6)} shown.`} aria-describedby={hint}
            onKeyDown={keys} onBlur={() => setAt(-1)}
            onPointerDown={(event) => {
              if (event.pointerType === "touch" || event.button !== 0) return;
              event.currentTarget.setPointerCapture(event.pointerId);
              const here = us(event.clientX, event.currentTarget);
              setDrag([here, here]);
            }}
            onPointerMove={(event) => {
              if (drag) setDrag([drag[0], us(event.clientX, event.currentTarget)]);
              else setOver(marked(event));
            }}
            onPointerUp={finish} onPointerLeave={() => setOver(null)} onClick={(event) => setOver(marked(event))}
            onDblClick={() => props.onView(null, null)}
          >
            {props.attempts.filter((one) => one.end_us > from && one.start_us < to).map((one) => {
              const band = cut(one.start_us, one.end_us);
              return (
                <g key={one.attempt}>
                  <rect class={`attempt ${one.attempt % 2 ? "odd" : ""}`} {...band} y={0} height={height - 20} />
                  {band.width > 20 ? <text class="attempt-name" x={band.x + 4} y={12}>{band.width > 76 ? `attempt ${one.attempt}` : one.attempt}</text> : null}
                </g>
              );
            })}
            {timeTicks(from, to, Math.max(2, Math.floor(wide / 90))).map((tick) => (
              <g key={tick.at}>
                <line class="grid" x1={x(tick.at)} x2={x(tick.at)} y1={HEAD} y2={height - 20} />
                <text class="tick" x={Math.max(left + 18, Math.min(x(tick.at), width - 24))} y={height - 6} text-anchor="middle">{tick.text}</text>
              </g>
            ))}
            {narrow ? null : <text class="lane-name" x={0} y={HEAD + 20}>charged to</text>}
            {drawn.map((one) => (
              <rect key={one.from} class={`fill-${one.component}`} {...cut(one.from, one.to)} y={HEAD} height={MAIN} />
            ))}
            {seen.length <= 1_500 ? seen.map((one) => (
              <rect key={one.start_us} class="touch" {...cut(one.start_us, one.end_us)} y={HEAD} height={MAIN}
                data-says={describe(told.segments.indexOf(one)) ?? ""} />
            )) : null}
            {at >= 0 && told.segments[at] ? (
              <rect class="picked" {...cut(told.segments[at]!.start_us, told.segments[at]!.end_us)} y={HEAD - 2} height={MAIN + 4} />
            ) : null}
            {rows.map((lane, index) => {
              const y = HEAD + MAIN + 10 + index * laneHigh;
              const bar = narrow ? y + 14 : y + 2;
              const name = narrow || left > 150 ? named(lane.phase) : shortly(lane.phase);
              return (
                <g key={lane.phase}>
                  <line class="grid" x1={0} x2={width} y1={y} y2={y} />
                  <text class="lane-name" x={0} y={narrow ? y + 11 : y + 14}>
                    {!narrow && name.length * 6.4 > left ? `${name.slice(0, Math.floor(left / 6.4) - 1)}…` : name}
                    <title>{named(lane.phase)}</title>
                  </text>
                  {lane.rows.filter((row) => row.end_us > from && row.start_us < to).map((row, place) => {
                    const late = row.behind_s > 0 && row.ranks > 1 ? cut(Math.max(row.end_us - row.behind_s * 1e6, row.start_us), row.end_us) : null;
                    const says = `${named(row.phase)}: ${span((row.end_us - row.start_us) / 1e6)} from ${moment(row.start_us, true)} UTC, attempt ${row.attempt}`
                      + (row.open ? ", still open" : "")
                      + (row.background ? ", in the background: nothing waited for it" : row.container ? ", holds other phases" : row.hidden_s > 0 ? `, ${span(row.hidden_s)} of it hidden behind something longer` : "")
                      + (row.ranks > 1 ? `; ${row.ranks} ranks told of it, ${lastOf(row)}` : "");
                    return (
                      <g key={place} data-says={says}>
                        {row.container
                          ? <rect class={`holds fill-${row.component}`} {...cut(row.start_us, row.end_us)} y={bar + 6} height={3} />
                          : row.background || row.hidden_s > 0
                            ? <rect class={`hidden-work stroke-${row.component}`} {...cut(row.start_us, row.end_us)} y={bar} height={ROW - 5} />
                            : <rect class={`fill-${row.component}`} {...cut(row.start_us, row.end_us)} y={bar} height={ROW - 5} />}
                        {row.background || (row.hidden_s === 0 && !row.container) ? null : charged(row, stages).filter((part) => part.to > from && part.from < to).map((part) => (
                          <rect key={part.from} class={`fill-${row.component}`} {...cut(part.from, part.to)} y={bar} height={ROW - 5} />
                        ))}
                        {late && late.width > 1.5 ? <rect class="late-mark" {...late} y={bar + ROW - 9} height={4} /> : null}
                      </g>
                    );
                  })}
                </g>
              );
            })}
            {shown.map((mark, index) => (
              <text key={index} class={`sign ${mark.kind}`} x={x(mark.at_us)} y={HEAD - 8} text-anchor="middle"
                data-says={`${SIGN_NAMES[mark.kind] ?? mark.kind}, ${moment(mark.at_us, true)} UTC, attempt ${mark.attempt}: ${mark.label}`}>
                {SIGNS[mark.kind] ?? "•"}
              </text>
            ))}
            {drag ? <rect class="chosen" x={Math.min(x(drag[0]), x(drag[1]))} width={Math.abs(x(drag[1]) - x(drag[0]))} y={0} height={height - 20} /> : null}
          </svg>
        ) : <div class="unmeasured" />}
        <div class="readout" aria-live="polite">
          {describe(at) ?? over ?? (
            <span class="hint">{moment(from)} to {moment(to)} UTC ({clock(from, true)}–{clock(to, true)}), {span((to - from) / 1e6)}. Point at a bar to read it.</span>
          )}
        </div>
      </div>
    </Frame>
  );
}
