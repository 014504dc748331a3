// Rows of jobs, each linked to what it was.
import { amount, count, moment, percent, span } from "../format";
import { link } from "../router";
import { STATUS } from "../terms";
import type { JobRow } from "../types";
import { Stage } from "./stage";
import { type Column, Table } from "./table";
import { Term } from "./term";

export function Status(props: { of: string }) {
  return <span class={`status ${props.of}`}><Term of={props.of} means={STATUS[props.of]}>{props.of}</Term></span>;
}

export function JobLink(props: { job: string }) {
  return <a class="job" href={link(["jobs", props.job])}>{props.job}</a>;
}

function Team(props: { of: string | null }) {
  return props.of ? <a href={link(["teams", props.of])}>{props.of}</a> : <span class="hint">none named</span>;
}

const ALL: Record<string, Column<JobRow>> = {
  job: { name: "job", head: "job", first: true, sort: "job", cell: (row) => <JobLink job={row.job} /> },
  status: { name: "status", head: "status", sort: "status", cell: (row) => <Status of={row.status} /> },
  team: { name: "team", head: "team", sort: "team", cell: (row) => <Team of={row.team} /> },
  model: { name: "model", lesser: true, head: "model", sort: "model", cell: (row) => row.model ?? <span class="hint">none named</span> },
  cluster: { name: "cluster", lesser: true, head: "cluster", sort: "cluster", cell: (row) => row.cluster ?? <span class="hint">none named</span> },
  gpus: { name: "gpus", lesser: true, head: "GPUs", sort: "gpus", number: true, cell: (row) => count(row.gpus) },
  begun: { name: "begun", head: "began (UTC)", sort: "t0", cell: (row) => <span class="nowrap">{moment(row.t0_us)}</span> },
  e2e: { name: "e2e", lesser: true, head: "wall time", term: "wall time", sort: "e2e", number: true, cell: (row) => span(row.e2e_s) },
  ett: { name: "ett", head: <span class="nowrap">ETT %</span>, term: "ETT %", sort: "ett", number: true, cell: (row) => percent(row.ett_pct) },
  lost: { name: "lost", head: <>lost <span class="nowrap">GPU-h</span></>, term: "lost GPU-hours", sort: "lost", number: true, cell: (row) => amount(row.lost_gpu_h) },
  worst: { name: "worst", head: "mostly to", wide: true, cell: (row) => (row.worst_stage ? <Stage of={row.worst_stage} /> : "–") },
  tts: { name: "tts", head: "time to start", term: "time to start", sort: "tts", number: true, cell: (row) => span(row.tts_s) },
  recovery: { name: "recovery", lesser: true, head: "recovering", term: "time to recover", sort: "recovery", number: true, cell: (row) => span(row.recovery_s) },
  nof: { name: "nof", lesser: true, head: "failures", term: "failures", sort: "nof", number: true, cell: (row) => count(row.nof) },
};

export function Jobs(props: { label: string; rows: JobRow[]; columns: string[]; sorted?: string; onSort?: (by: string) => void }) {
  return (
    <Table label={props.label} rows={props.rows} keyOf={(row) => row.job} sorted={props.sorted} onSort={props.onSort}
      columns={props.columns.map((name) => ALL[name]!)} />
  );
}
