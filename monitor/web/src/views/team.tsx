// One team: what its jobs lost, to what, and which jobs.
import { address, useAnswer } from "../api";
import { useScene } from "../context";
import { amount, largest, percent } from "../format";
import { Empty, Shown } from "../parts/answer";
import { Fitting } from "../parts/alert-lines";
import { Section } from "../parts/figure";
import { Figures } from "../parts/figures";
import { Groups } from "../parts/groups";
import { Jobs } from "../parts/jobs";
import { Components, Stages } from "../parts/losses";
import { SeriesCharts, useSeries } from "../parts/series";
import { RangeBar } from "../range";
import { link } from "../router";
import { named } from "../terms";
import type { TeamView as Told } from "../types";

export function TeamView(props: { team: string }) {
  const { range } = useScene();
  const { team } = props;
  const name = team === "-" ? "jobs without a team" : team;
  const asked = { from: range.from, to: range.to };
  const series = useSeries({ ...asked, team: team === "-" ? "" : team });
  const answer = useAnswer<Told>(address(["teams", team], asked), { live: true });
  return (
    <>
      <div class="head">
        <h1><span class="kind">Team</span> {name}</h1>
        <RangeBar range={range} />
      </div>
      <p class="crumbs"><a href={link([])}>Fleet</a> · <a href={link(["jobs"], { team })}>All jobs of {name}</a> · <a href={link(["advice"], { team })}>Advice for {name}</a> · <a href={link(["compare"], { kind: "team", a: team })}>Compare {name} with another team</a></p>
      <Shown answer={answer} what={`team ${team}`}>{(data) => (data.total.total_gpu_h > 0 ? (
        <>
          <p class="lead">
            {range.phrase} {team === "-" ? name : `the jobs of ${team}`} lost <strong>{amount(data.total.lost_gpu_h)}</strong> of {amount(data.total.total_gpu_h)} GPU-hours ({percent(data.total.ett_pct === null ? null : 100 - data.total.ett_pct)})
            {data.stages[0] ? <>, {largest(data.stages[0].gpu_h, data.total.lost_gpu_h)}, to <strong>{named(data.stages[0].stage)}</strong>: {amount(data.stages[0].gpu_h)} GPU-hours</> : null}.
          </p>
          <Fitting of={team === "-" ? "these jobs" : team} whose={{
            teams: [team], models: data.models.map((one) => one.key), clusters: data.clusters.map((one) => one.key),
            owners: data.stages.slice(0, 5).map((one) => one.owner?.team ?? ""),
          }} />
          <Figures now={data.total} before={data.before} filter={{ team }} />
          <Section id="lost" title="Where the lost GPU-hours went">
            <div class="columns lean">
              <div><h3>By component</h3><Components components={data.components} label={`Lost GPU-hours of ${team} by component`} /></div>
              <div><h3>Stages that cost most</h3><Stages stages={data.stages} label={`Stages that cost ${team} most`} team={team} /></div>
            </div>
          </Section>
          <Section id="jobs" title="Jobs that lost most" note="Each row is the whole life of a job, also outside of the time above." side={<a href={link(["jobs"], { team, sort: "-lost" })}>All jobs</a>}>
            {data.jobs.length ? <Jobs label={`Jobs of ${team} that lost most`} rows={data.jobs} columns={["job", "status", "gpus", "begun", "e2e", "ett", "lost", "worst", "tts", "nof"]} />
              : <Empty title="No jobs." />}
          </Section>
          <SeriesCharts series={series} />
          <div class="columns even tables">
            <Section id="models" title="By model"><Groups kind="model" groups={data.models} label={`Lost GPU-hours of ${team} by model`} /></Section>
            <Section id="clusters" title="By cluster"><Groups kind="cluster" groups={data.clusters} label={`Lost GPU-hours of ${team} by cluster`} /></Section>
          </div>
        </>
      ) : <Empty title={`${team === "-" ? "Jobs without a team" : `Team ${team}`} had no jobs in this time.`}><p>Choose another time above, or go to <a href={link([])}>all teams</a>.</p></Empty>)}</Shown>
    </>
  );
}
