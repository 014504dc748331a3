// Why a job took so long to start: the first attempt before its first batch, stage by stage, with what mostly helps.
import { capital, count, gpuUnit, largest, percent, signed, span } from "../format";
import { Bar } from "../charts/stack";
import { Section } from "../parts/figure";
import { Stage } from "../parts/stage";
import { Table } from "../parts/table";
import { Term } from "../parts/term";
import { link } from "../router";
import { componentOf, helps, named } from "../terms";
import type { JobDetail, PhaseRow, Timeline, UsualStart } from "../types";

/** From this share of a start on, waiting for one rank is worth a sentence. */
const LATE = 0.1;

interface Part {
  stage: string;
  seconds: number;
  gpuHours: number;
}

/** What was charged from one moment to another, the most first. */
export function partsOf(told: Timeline, from: number, to: number): Part[] {
  const found = new Map<string, Part>();
  for (const one of told.segments) {
    const seconds = (Math.min(one.end_us, to) - Math.max(one.start_us, from)) / 1e6;
    if (seconds <= 0) continue;
    const part = found.get(one.stage) ?? { stage: one.stage, seconds: 0, gpuHours: 0 };
    part.seconds += seconds;
    part.gpuHours += (seconds * one.gpus) / 3_600;
    found.set(one.stage, part);
  }
  return [...found.values()].sort((a, b) => b.seconds - a.seconds);
}

export interface Waited {
  rank: number;
  host: string | null;
  seconds: number;
  stages: number;
}

/** The rank that the others of an attempt waited for in several stages before a moment, if for a tenth of `all` (seconds). */
export function lateIn(told: Timeline, attempt: number, until: number, all: number): Waited | null {
  const ranks = new Map<number, PhaseRow[]>();
  for (const one of told.phases) {
    // Nobody waits for what only holds other phases, or runs beside something longer.
    if (one.attempt !== attempt || one.open || one.container || one.background || one.behind_s <= 0 || one.charged_s <= 0 || one.end_us > until) continue;
    ranks.set(one.last_rank, [...(ranks.get(one.last_rank) ?? []), one]);
  }
  let worst: Waited | null = null;
  for (const [rank, rows] of ranks) {
    const stages = new Set(rows.map((row) => row.phase)).size;
    let reached = 0;
    let waited = 0;
    // Phases may overlap: time counts once.
    const waits = rows.map((row) => [Math.max(row.end_us - row.behind_s * 1e6, row.start_us), row.end_us] as const).sort((a, b) => a[0] - b[0]);
    for (const [since, end] of waits) {
      waited += Math.max(0, end - Math.max(since, reached));
      reached = Math.max(reached, end);
    }
    if (stages > 1 && waited / 1e6 >= all * LATE && waited / 1e6 > (worst?.seconds ?? 0)) worst = { rank, host: rows.find((row) => row.last_host)?.last_host ?? null, seconds: waited / 1e6, stages };
  }
  return worst;
}

export function Late(props: { of: Waited }) {
  return <>rank {props.of.rank}{props.of.host ? <> (host <span class="nowrap">{props.of.host}</span>)</> : null}</>;
}

interface Row extends Part {
  /** Of other starts of the model; null where there are none. */
  usual: number | null;
}

/** The parts of a start beside what is usual: what took longer than that comes first. */
export function beside(parts: Part[], usual: UsualStart | null): Row[] {
  const known = usual !== null && usual.starts > 0;
  const rows = parts.map((part) => ({ ...part, usual: known ? (usual.stages[part.stage] ?? 0) : null }));
  return known ? rows.sort((a, b) => b.seconds - b.usual! - (a.seconds - a.usual!)) : rows;
}

function Cache(props: { of: UsualStart | null; stage: string }) {
  if (componentOf(props.stage) !== "pt2_compilation" || !props.of) return null;
  const told = props.of.caches[props.stage] ?? props.of.caches.pt2_compilation;
  return told ? <span class="label">{told === "mixed" ? "partly cold" : told}</span> : null;
}

function found(caches: Record<string, string>): string {
  const told = Object.values(caches);
  return told.every((one) => one === "warm") ? "Its compiled code came from a cache"
    : told.every((one) => one === "cold") ? "It compiled everything anew (cold)" : "It compiled in part anew";
}

function Usual(props: { of: UsualStart; rows: Row[]; tts: number | null }) {
  const { of, tts } = props;
  if (!of.starts || of.tts_p50_s === null) return of.model ? <p class="hint">No other job of {of.model} started in this time, so nothing says what is usual.</p> : null;
  const over = props.rows.filter((row) => row.seconds - row.usual! >= Math.max(1, (tts ?? 0) * 0.05)).slice(0, 3);
  const told = of.warm + of.cold;
  return (
    <p class="lead small">
      {of.starts === 1 ? "One other start" : `${count(of.starts)} other starts`} of {of.model} took {span(of.tts_p50_s)}{of.starts > 1 ? " (median)" : ""}
      {tts !== null ? <>: this one {Math.abs(tts - of.tts_p50_s) < 1 ? "as long" : <><strong>{span(Math.abs(tts - of.tts_p50_s))}</strong> {tts > of.tts_p50_s ? "longer" : "less"}</>}</> : null}.
      {over.length ? <> Most above the usual: {over.map((row, at) => <span key={row.stage}>{at ? ", " : ""}{named(row.stage)} ({signed(row.seconds - row.usual!, span)})</span>)}.</> : null}
      {Object.keys(of.caches).length ? <> {found(of.caches)}{told ? `; ${count(of.warm)} of ${told === 1 ? "one other start" : `${count(told)} other starts`} found theirs in a cache` : ""}.</> : null}
    </p>
  );
}

export function Start(props: { job: JobDetail; told: Timeline; usual: UsualStart | null }) {
  const { job, told, usual } = props;
  const first = job.attempts[0];
  if (!first) return null;
  const until = first.first_batch_us ?? first.end_us;
  const over = !first.open;
  const parts = partsOf(told, told.t0_us, until);
  const all = parts.reduce((sum, part) => sum + part.seconds, 0);
  const waited = parts.filter((part) => componentOf(part.stage) === "scheduling").reduce((sum, part) => sum + part.seconds, 0);
  const worst = parts[0];
  const rows = beside(parts, usual);
  const shown = rows.slice(0, 12);
  const unit = gpuUnit(Math.max(...shown.map((row) => row.gpuHours), 0));
  const known = usual !== null && usual.starts > 0;
  const late = lateIn(told, first.attempt, until, all);
  return (
    <Section id="start" title={first.first_batch_us !== null ? "Why it took so long to start" : over ? `Why attempt ${first.attempt} did not come to train` : "Why it has not started to train"}>
      <p class="lead small">
        From when it could have run to its first batch{first.first_batch_us !== null ? "" : over ? `, which did not come in attempt ${first.attempt},` : ", which has not come,"} {span(all)} went by: {span(waited)} waiting for hardware,
        then {span(all - waited)} on it (its <Term of="time to start" />).
        {worst ? <> {capital(largest(worst.seconds, all))}, went to <strong>{named(worst.stage)}</strong>.</> : null}
        {late ? <> For {span(late.seconds)} of the start ({percent((late.seconds / all) * 100, 0)}) the others <strong>waited for <Late of={late} /></strong>, <a href="#stragglers">last in {late.stages} stages</a>.</> : null}
      </p>
      {usual ? <Usual of={usual} rows={rows} tts={job.row.tts_s} /> : null}
      <Table label="The start, stage by stage" rows={shown} keyOf={(row) => row.stage} columns={[
        { name: "stage", head: "stage", first: true, cell: (row) => <><Stage of={row.stage} /> <Cache of={usual} stage={row.stage} /></> },
        { name: "for", head: "took", number: true, cell: (row) => span(row.seconds) },
        ...(known ? [
          { name: "usual", head: <Term of="usual" means={`The median of ${count(usual.starts)} other starts of ${usual.model ?? "its model"}, of this stage alone. Medians do not add up to the median start.`} />, number: true, cell: (row: Row) => span(row.usual) },
          { name: "excess", head: "above it", number: true, cell: (row: Row) => signed(row.seconds - row.usual!, span) },
        ] : []),
        { name: "bar", wide: true, head: <span class="sr">as a bar</span>, cell: (row) => <Bar value={row.seconds} of={worst?.seconds ?? 0} stage={componentOf(row.stage)} /> },
        { name: "cost", head: <Term of="GPU-hours">{unit.name}</Term>, number: true, cell: (row) => unit.of(row.gpuHours) },
        ...(shown.some((row) => first.hidden_s[row.stage]) ? [
          { name: "hidden", head: <Term of="hidden work" />, number: true, cell: (row: Row) => (first.hidden_s[row.stage] ? span(first.hidden_s[row.stage]) : "–") },
        ] : []),
        {
          name: "owner", head: <Term of="owner" />,
          cell: (row) => { const owner = job.owners[row.stage]; return owner ? <><a class="under" href={link(["owners", owner.team])}>{owner.team}</a>{owner.contact ? <span class="hint"> {owner.contact}</span> : null}</> : <span class="hint">nobody named</span>; },
        },
        { name: "help", head: "what mostly helps", wide: true, bare: true, cell: (row) => <span class="help">{helps(row.stage) ?? ""} <a href={link(["advice"], { job: job.row.job, stage: row.stage })}>Gains</a></span> },
      ]} />
    </Section>
  );
}
