// One owner: what the stages cost that a team owns, whoever's jobs they are.
import { address, useAnswer } from "../api";
import { Bar } from "../charts/stack";
import { OverTime } from "../charts/over-time";
import { useScene } from "../context";
import { amount, percent, signed } from "../format";
import { Empty, Shown } from "../parts/answer";
import { Facts, Figure, Section, change } from "../parts/figure";
import { Stages } from "../parts/losses";
import { zoomTo } from "../parts/series";
import { Table } from "../parts/table";
import { Term } from "../parts/term";
import { RangeBar } from "../range";
import { link } from "../router";
import { COMPONENTS } from "../terms";
import type { OwnerView as Told } from "../types";

function Share(props: { title: string; kind: string; of: Record<string, number> }) {
  const rows = Object.entries(props.of).sort((a, b) => b[1] - a[1]).slice(0, 10);
  return (
    <Section id={props.kind} title={props.title}>
      {rows.length ? (
        <Table label={props.title} rows={rows} keyOf={(row) => row[0]} columns={[
          { name: "key", head: props.kind, first: true, cell: ([key]) => (key === "" ? <span class="hint">none named</span> : <a href={props.kind === "team" ? link(["teams", key]) : link(["jobs"], { [props.kind]: key, sort: "-lost" })}>{key}</a>) },
          { name: "value", head: <Term of="GPU-hours" />, number: true, cell: (row) => amount(row[1]) },
          { name: "bar", head: <span class="sr">as a bar</span>, cell: (row) => <Bar value={row[1]} of={rows[0]![1]} /> },
        ]} />
      ) : <Empty title="None." />}
    </Section>
  );
}

export function OwnerView(props: { owner: string }) {
  const { range } = useScene();
  const { owner } = props;
  const name = owner === "-" ? "stages without an owner" : owner;
  const answer = useAnswer<Told>(address(["owners", owner], { from: range.from, to: range.to }), { live: true });
  return (
    <>
      <div class="head">
        <h1><span class="kind"><Term of="owner">Owner</Term></span> {name}</h1>
        <RangeBar range={range} />
      </div>
      <p class="crumbs"><a href={link([], { by: "owner" })}>All owners</a> · <a href={link(["advice"], { owner })}>Advice for {name}</a></p>
      <Shown answer={answer} what={`owner ${owner}`}>{(data) => (data.stages.length ? (
        <>
          <p class="lead">
            {range.phrase} what {owner === "-" ? "nobody" : owner} owns cost the fleet <strong>{amount(data.lost_gpu_h)}</strong> GPU-hours{data.share_pct === null ? "" : `, ${percent(data.share_pct)} of all that was lost`}.
            {data.contacts.length ? <> Contact: {data.contacts.join(", ")}.</> : null}
          </p>
          <Facts>
            <Figure name={<Term of="lost GPU-hours" />} value={amount(data.lost_gpu_h)} href="#stages" explains="By stage"
              change={change(data.lost_gpu_h, data.before_lost_gpu_h, { more: "bad", least: Math.max(data.lost_gpu_h * 0.01, 0.01), text: (by) => signed(by, amount) })} />
            <Figure name="of the fleet's loss" value={percent(data.share_pct)} href={link([], { by: "owner" })} explains="All owners" />
          </Facts>
          <Section id="stages" title="By stage"><Stages stages={data.stages} label={`What the stages of ${owner} cost`} owners={false} most={50} /></Section>
          <Section id="over-time" title="Over time">
            <OverTime name={`Lost GPU-hours of ${owner}`} from_us={data.window.from_us} to_us={data.window.to_us} step_s={data.step_s} unit="GPU-hours" text={amount}
              keys={COMPONENTS.filter((key) => data.series.some((one) => (one.components[key] ?? 0) > 0))}
              spots={data.series.map((one) => ({ at_us: one.at_us, parts: one.components }))} onRange={zoomTo} />
          </Section>
          <div class="columns three">
            <Share title="Teams that paid for it" kind="team" of={data.teams} />
            <Share title="Models" kind="model" of={data.models} />
            <Share title="Clusters" kind="cluster" of={data.clusters} />
          </div>
        </>
      ) : <Empty title={`Nothing was lost to what ${owner} owns in this time.`}><p>Choose another time above, or go to <a href={link([], { by: "owner" })}>all owners</a>. Who owns what stands in the ownership file.</p></Empty>)}</Shown>
    </>
  );
}
