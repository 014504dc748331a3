// Why a job took so long to start: the first attempt before its first batch, stage by stage, with what mostly helps.
import { amount, percent, span } from "../format";
import { Bar } from "../charts/stack";
import { Section } from "../parts/figure";
import { Stage } from "../parts/stage";
import { Table } from "../parts/table";
import { Term } from "../parts/term";
import { link } from "../router";
import { componentOf, helps, named } from "../terms";
import type { JobDetail, Timeline } from "../types";

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

export function Start(props: { job: JobDetail; told: Timeline }) {
  const { job, told } = props;
  const first = job.attempts[0];
  if (!first) return null;
  const until = first.first_batch_us ?? first.end_us;
  const parts = partsOf(told, told.t0_us, until);
  const all = parts.reduce((sum, part) => sum + part.seconds, 0);
  const waited = parts.filter((part) => componentOf(part.stage) === "scheduling").reduce((sum, part) => sum + part.seconds, 0);
  const worst = parts[0];
  return (
    <Section id="start" title={first.first_batch_us === null ? "Why it has not started to train" : "Why it took so long to start"}>
      <p class="lead small">
        From when it could have run to its first batch{first.first_batch_us === null ? ", which has not come," : ""} {span(all)} went by: {span(waited)} waiting for hardware,
        then {span(all - waited)} on it (its <Term of="time to start" />).
        {worst ? <> Most went to <strong>{named(worst.stage)}</strong> ({percent((worst.seconds / all) * 100, 0)}).</> : null}
      </p>
      <Table label="The start, stage by stage" rows={parts.slice(0, 12)} keyOf={(row) => row.stage} columns={[
        { name: "stage", head: "stage", first: true, cell: (row) => <Stage of={row.stage} /> },
        { name: "for", head: "took", number: true, cell: (row) => span(row.seconds) },
        { name: "bar", head: <span class="sr">as a bar</span>, cell: (row) => <Bar value={row.seconds} of={worst?.seconds ?? 0} stage={componentOf(row.stage)} /> },
        { name: "cost", head: <Term of="GPU-hours" />, number: true, cell: (row) => amount(row.gpuHours) },
        { name: "hidden", head: <Term of="hidden work" />, number: true, cell: (row) => (first.hidden_s[row.stage] ? span(first.hidden_s[row.stage]) : "–") },
        {
          name: "owner", head: <Term of="owner" />,
          cell: (row) => { const owner = job.owners[row.stage]; return owner ? <><a href={link(["owners", owner.team])}>{owner.team}</a>{owner.contact ? <span class="hint"> {owner.contact}</span> : null}</> : <span class="hint">nobody named</span>; },
        },
        { name: "help", head: "what mostly helps", cell: (row) => <span class="help">{helps(row.stage) ?? ""} <a href={link(["advice"], { team: job.row.team, stage: row.stage })}>Gains</a></span> },
      ]} />
    </Section>
  );
}
