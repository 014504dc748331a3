// Teams, models, clusters or owners, the one that lost most first.
import { useState } from "preact/hooks";
import { amount, percent, signed, span } from "../format";
import { link } from "../router";
import type { Group } from "../types";
import { Stack } from "../charts/stack";
import { componentOf, named } from "../terms";
import { Empty } from "./answer";
import { Table } from "./table";
import { Term } from "./term";

/** How addresses name the jobs without a team, and the stages without an owner. */
const NOBODY = "-";

export const KINDS: Record<string, string> = { team: "Team", model: "Model", cluster: "Cluster", owner: "Owner" };

function hrefOf(kind: string, key: string): string {
  if (kind === "team") return link(["teams", key]);
  if (kind === "owner") return link(["owners", key]);
  return link(["jobs"], { [kind]: key, sort: "-lost" });
}

/** The component that cost a group most. */
export function worst(components: Record<string, number>): string | null {
  const lost = Object.entries(components).filter(([name, value]) => name !== "effective_training" && value > 0);
  return lost.length ? lost.reduce((best, one) => (one[1] > best[1] ? one : best))[0] : null;
}

export function Groups(props: { kind: string; groups: Group[]; label: string; most?: number }) {
  const [all, setAll] = useState(false);
  const most = props.most ?? 10;
  const rows = all ? props.groups : props.groups.slice(0, most);
  const largest = Math.max(...props.groups.map((one) => one.lost_gpu_h), 0);
  if (!rows.length) return <Empty title="None had any time here." />;
  const owner = props.kind === "owner";
  return (
    <>
      <Table label={props.label} rows={rows} keyOf={(row) => row.key ?? ""} columns={[
        {
          name: "key", head: KINDS[props.kind]?.toLowerCase() ?? props.kind, first: true,
          cell: (row) => (row.key ? <a href={hrefOf(props.kind, row.key)}>{row.key}</a>
            : props.kind === "team" || owner ? <a href={hrefOf(props.kind, NOBODY)}>none named</a> : <span class="hint">none named</span>),
        },
        { name: "lost", head: <Term of="lost GPU-hours">lost GPU-h</Term>, number: true, cell: (row) => amount(row.lost_gpu_h) },
        ...(rows.some((row) => row.before_lost_gpu_h !== null) ? [{
          name: "before", head: "against before", number: true,
          cell: (row: Group) => (row.before_lost_gpu_h === null ? "–" : signed(row.lost_gpu_h - row.before_lost_gpu_h, amount)),
        }] : []),
        { name: "bar", head: "made up of", wide: true, bare: true, cell: (row) => <Stack parts={row.components} of={largest} text={amount} label={`${row.key ?? "none named"}, lost GPU-hours`} /> },
        {
          name: "worst", head: "mostly to",
          cell: (row) => { const name = worst(row.components); return name ? <span class="nowrap"><span class={`dot bg-${componentOf(name)}`} aria-hidden="true" /> {named(name)}</span> : "–"; },
        },
        ...(owner ? [] : [
          { name: "ett", head: <Term of="ETT %" />, number: true, cell: (row: Group) => percent(row.figures?.ett_pct) },
          { name: "tts", head: <Term of="time to start" />, number: true, cell: (row: Group) => span(row.figures?.tts_p50_s) },
          { name: "nof", head: <Term of="failures" />, number: true, cell: (row: Group) => row.figures?.nof ?? "–" },
        ]),
      ]} />
      {props.groups.length > most ? (
        <button type="button" class="quiet" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${props.groups.length}`}
        </button>
      ) : null}
    </>
  );
}
