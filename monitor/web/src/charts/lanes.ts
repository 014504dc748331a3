// The rows of a job's timeline: what was charged, and under it one row for each phase.
import type { PhaseRow, Seg, Timeline } from "../types";
import { COMPONENTS, EFFECTIVE } from "../terms";

export interface Lane {
  phase: string;
  rows: PhaseRow[];
}

export interface Stretch {
  from: number;
  to: number;
}

const place = (component: string) => {
  const at = [...COMPONENTS, EFFECTIVE].indexOf(component as never);
  return at < 0 ? COMPONENTS.length : at;
};

/** One lane for each phase that was told, in order of component, then of its first start. */
export function lanes(timeline: Timeline): Lane[] {
  const found = new Map<string, PhaseRow[]>();
  for (const row of timeline.phases) {
    const rows = found.get(row.phase);
    if (rows) rows.push(row);
    else found.set(row.phase, [row]);
  }
  const made = [...found].map(([phase, rows]) => ({ phase, rows: rows.sort((a, b) => a.start_us - b.start_us) }));
  return made.sort((a, b) =>
    place(a.rows[0]!.component) - place(b.rows[0]!.component)
    || a.rows[0]!.start_us - b.rows[0]!.start_us
    || (a.phase < b.phase ? -1 : 1));
}

/** Segments by stage, each list in order of time: where a phase was what the job waited for. */
export function byStage(segments: Seg[]): Map<string, Seg[]> {
  const found = new Map<string, Seg[]>();
  for (const segment of segments) {
    const list = found.get(segment.stage);
    if (list) list.push(segment);
    else found.set(segment.stage, [segment]);
  }
  return found;
}

/** The parts of a phase that were charged; the rest of it was hidden behind something longer. */
export function charged(row: PhaseRow, segments: Map<string, Seg[]>): Stretch[] {
  const list = segments.get(row.phase) ?? [];
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]!.end_us <= row.start_us) low = middle + 1;
    else high = middle;
  }
  const made: Stretch[] = [];
  for (let at = low; at < list.length && list[at]!.start_us < row.end_us; at += 1) {
    made.push({ from: Math.max(list[at]!.start_us, row.start_us), to: Math.min(list[at]!.end_us, row.end_us) });
  }
  return made;
}

/** Neighbours too narrow to be seen become one of the component that has most of the pixel. */
export function drawable(segments: Seg[], perPixel: number): { component: string; from: number; to: number }[] {
  const made: { component: string; from: number; to: number }[] = [];
  let shares = new Map<string, number>();
  let from = 0;
  let to = 0;
  const flush = () => {
    if (shares.size) {
      const component = [...shares].reduce((best, one) => (one[1] > best[1] ? one : best))[0];
      made.push({ component, from, to });
    }
    shares = new Map();
  };
  for (const one of segments) {
    const length = one.end_us - one.start_us;
    if (length >= perPixel) {
      flush();
      const last = made.at(-1);
      if (last && last.component === one.component && last.to === one.start_us) last.to = one.end_us;
      else made.push({ component: one.component, from: one.start_us, to: one.end_us });
      continue;
    }
    if (!shares.size) from = one.start_us;
    to = one.end_us;
    shares.set(one.component, (shares.get(one.component) ?? 0) + length);
    if (to - from >= perPixel) flush();
  }
  flush();
  return made;
}
