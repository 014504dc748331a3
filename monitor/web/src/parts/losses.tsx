// Where the lost GPU-hours went: by component, and the stages that cost most with what mostly helps.
import { gpuUnit, percent } from "../format";
import { link } from "../router";
import { COMPONENTS, componentOf, helps } from "../terms";
import type { StageLoss } from "../types";
import { Bar } from "../charts/stack";
import { Empty } from "./answer";
import { Stage } from "./stage";
import { Table } from "./table";
import { Term } from "./term";

export function Components(props: { components: Record<string, number>; label: string }) {
  const rows = COMPONENTS.map((name) => ({ name, value: props.components[name] ?? 0 })).sort((a, b) => b.value - a.value);
  const lost = rows.reduce((sum, row) => sum + row.value, 0);
  const unit = gpuUnit(rows[0]!.value);
  return (
    <Table label={props.label} rows={rows} keyOf={(row) => row.name} columns={[
      { name: "component", head: "component", first: true, cell: (row) => <Stage of={row.name} /> },
      { name: "value", head: <Term of="GPU-hours">{unit.name}</Term>, number: true, cell: (row) => unit.of(row.value) },
      { name: "share", head: "of the loss", number: true, cell: (row) => percent(lost > 0 ? (row.value / lost) * 100 : null) },
      { name: "bar", wide: true, head: <span class="sr">share as a bar</span>, cell: (row) => <Bar value={row.value} of={rows[0]!.value} stage={row.name} /> },
    ]} />
  );
}

export function Stages(props: { stages: StageLoss[]; label: string; most?: number; owners?: boolean; team?: string }) {
  const rows = props.stages.slice(0, props.most ?? 8);
  const all = props.stages.reduce((sum, row) => sum + row.gpu_h, 0);
  if (!rows.length) return <Empty title="Nothing was lost in this time." />;
  const unit = gpuUnit(rows[0]!.gpu_h);
  return (
    <Table label={props.label} rows={rows} keyOf={(row) => row.stage} columns={[
      { name: "stage", head: "stage", first: true, cell: (row) => <Stage of={row.stage} /> },
      { name: "value", head: <Term of="GPU-hours">{unit.name}</Term>, number: true, cell: (row) => unit.of(row.gpu_h) },
      { name: "share", head: "of the loss", number: true, cell: (row) => percent(all > 0 ? (row.gpu_h / all) * 100 : null) },
      { name: "bar", wide: true, head: <span class="sr">share as a bar</span>, cell: (row) => <Bar value={row.gpu_h} of={rows[0]!.gpu_h} stage={componentOf(row.stage)} /> },
      ...(props.owners === false ? [] : [{
        name: "owner", head: <Term of="owner" />,
        cell: (row: StageLoss) => (row.owner ? <a href={link(["owners", row.owner.team])}>{row.owner.team}</a> : <span class="hint">nobody named</span>),
      }]),
      { name: "help", head: "what mostly helps", wide: true, bare: true, cell: (row) => <span class="help">{helps(row.stage) ?? ""} <a href={link(["advice"], { team: props.team, stage: row.stage })}>Gains</a></span> },
    ]} />
  );
}
