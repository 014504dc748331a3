// The fleet: what it lost, to what, and who lost most.
import { address, useAnswer } from "../api";
import { useScene } from "../context";
import { amount, largest, moment, percent } from "../format";
import { useLive } from "../live";
import { AlertLines } from "../parts/alert-lines";
import { Empty, Shown } from "../parts/answer";
import { Section } from "../parts/figure";
import { Figures } from "../parts/figures";
import { Groups, KINDS, worst } from "../parts/groups";
import { Jobs } from "../parts/jobs";
import { Components, Stages } from "../parts/losses";
import { SeriesCharts, useSeries } from "../parts/series";
import { RangeBar } from "../range";
import { changed, link } from "../router";
import { LIVE, named } from "../terms";
import type { Alerts, Fleet } from "../types";

function Sentence(props: { fleet: Fleet; phrase: string }) {
  const { total, groups, stages, by } = props.fleet;
  const first = groups.find((one) => one.key !== null && one.lost_gpu_h > 0);
  const stage = stages[0];
  if (!total.total_gpu_h) return null;
  const component = first ? worst(first.components) : null;
  return (
    <p class="lead">
      {props.phrase} the fleet lost <strong>{amount(total.lost_gpu_h)}</strong> of {amount(total.total_gpu_h)} GPU-hours ({percent(total.ett_pct === null ? null : 100 - total.ett_pct)}).
      {first ? <> {by === "owner" ? "The owner whose stages cost most" : `The ${by} that lost most`} is <a href={by === "team" || by === "owner" ? link([`${by}s`, first.key!]) : link(["jobs"], { [by]: first.key!, sort: "-lost" })}><strong>{first.key}</strong></a>: {amount(first.lost_gpu_h)} GPU-hours{component ? <>, {largest(first.components[component] ?? 0, first.lost_gpu_h)}, to {named(component).toLowerCase()}</> : null}.</> : null}
      {stage ? <> The stage that costs most is <strong>{named(stage.stage)}</strong>{stage.owner ? <>, owned by <a href={link(["owners", stage.owner.team])}>{stage.owner.team}</a></> : null}. <a href={link(["advice"], { stage: stage.stage })}>What to do about it</a></> : null}
    </p>
  );
}

export function FleetView() {
  const { place, range } = useScene();
  const { news } = useLive();
  const by = place.query.get("by") ?? "team";
  const asked = { from: range.from, to: range.to, model: place.query.get("model"), cluster: place.query.get("cluster") };
  const fleet = useAnswer<Fleet>(address(["fleet"], { ...asked, by }), { live: true });
  const series = useSeries(asked);
  const alerts = useAnswer<Alerts>(address(["alerts"]), { live: true });
  const filtered = [asked.model ? `model ${asked.model}` : "", asked.cluster ? `cluster ${asked.cluster}` : ""].filter(Boolean).join(", ");
  const live = news ? LIVE.reduce((sum, status) => sum + (news.statuses[status] ?? 0), 0) : 0;
  return (
    <>
      <div class="head">
        <h1>Fleet{filtered ? `: ${filtered}` : ""}</h1>
        <RangeBar range={range} />
      </div>
      <Shown answer={fleet} what="the fleet">{(data) => (data.total.total_gpu_h > 0 ? (
        <>
          <Sentence fleet={data} phrase={range.phrase} />
          <Figures now={data.total} before={data.before} filter={{ ...(asked.model ? { model: asked.model } : {}), ...(asked.cluster ? { cluster: asked.cluster } : {}) }} />
          <div class="columns">
            <Section id="losers" title="Who lost most" note="GPU-hours lost, beside the time before of equal length." side={(
              <nav class="group" aria-label="Grouped by">
                {Object.entries(KINDS).map(([name, text]) => (
                  <a key={name} class="choice" href={changed({ by: name === "team" ? null : name })} aria-current={data.by === name ? "true" : undefined}>{text}</a>
                ))}
              </nav>
            )}>
              <Groups kind={data.by} groups={data.groups} label={`Lost GPU-hours by ${data.by}`} />
            </Section>
            <Section id="alerts" title={<a href={link(["alerts"])}>Alerts</a>}>
              <Shown answer={alerts} what="alerts">{(told) => <AlertLines alerts={told.alerts.filter((one) => one.status === "firing")} most={6} />}</Shown>
            </Section>
          </div>
          <SeriesCharts series={series} />
          <Section id="lost" title="Where the lost GPU-hours went">
            <div class="columns lean">
              <div><h3>By component</h3><Components components={data.components} label="Lost GPU-hours by component" /></div>
              <div><h3>Stages that cost most</h3><Stages stages={data.stages} label="Stages that cost most" /></div>
            </div>
          </Section>
        </>
      ) : (
        <Empty title="No job had any time here.">
          <p>Choose another time{filtered ? <>, or look at <a href="/">all jobs</a></> : ""}. If this is a new installation, send it a first job: <code>ettwatch demo --lite</code> shows how.</p>
        </Empty>
      ))}</Shown>
      <Section id="live" title="Jobs that are not over" note={news ? `${live ? `${live} now, the largest first. ` : ""}As of ${moment(news.at_us, true)} UTC.` : undefined}
        side={<a href={link(["jobs"], { status: "live", sort: "-gpus" })}>All of them</a>}>
        {news === null ? <p class="hint">Waiting for the first news …</p>
          : news.jobs.length ? <Jobs label="Jobs that are not over" rows={news.jobs.slice(0, 12)} columns={["job", "status", "team", "gpus", "e2e", "ett", "lost", "worst"]} />
          : <Empty title="No job runs or waits now." />}
      </Section>
    </>
  );
}
