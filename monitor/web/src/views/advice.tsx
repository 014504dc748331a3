// Where an hour of work returns most: remedies with what they would give back, and the arithmetic.
import { useState } from "preact/hooks";
import type { AdviceAnswer } from "../advice";
import { address, useAnswer } from "../api";
import { useScene } from "../context";
import { count, gpuTime, gpuUnit, percent } from "../format";
import { Empty, Failed, Shown } from "../parts/answer";
import { Section } from "../parts/figure";
import { Filters } from "../parts/filters";
import { JobLink } from "../parts/jobs";
import { Pick } from "../parts/pick";
import { Stage } from "../parts/stage";
import { RangeBar } from "../range";
import { changed, set } from "../router";
import { helps, named } from "../terms";
import { Remedy } from "./remedy";
import { Change, asked } from "./what-if";

const FIRST = 10;

export function AdviceView() {
  const { me, place, range } = useScene();
  const [all, setAll] = useState(false);
  const query = (name: string) => place.query.get(name);
  const [team, owner, stage, job] = [query("team"), query("owner"), query("stage"), query("job")];
  const answer = useAnswer<AdviceAnswer>(address(["advice"], { from: range.from, to: range.to, team: team === "-" ? "" : team, owner, stage, job }));
  const titles = Object.fromEntries(answer.data?.groups.map((one) => [one.remedy, one.title]) ?? []);
  const help = stage ? helps(stage) : undefined;
  return (
    <>
      <div class="head">
        <h1>Advice</h1>
        {job ? null : <RangeBar range={range} />}
      </div>
      <p class="lead small">{job ? <>What job <JobLink job={job} /> could have got back over its whole life</> : "What the fleet could get back"}, by remedy, the most first. Each gain comes from replaying {job ? "the job" : "the fleet’s own jobs"} with the remedy in place, by the same rules as every other figure here.</p>
      <Filters set={[team, owner, stage, job].filter(Boolean).length}>
        {job ? <p class="chosen-stage">Only job <JobLink job={job} /> <a href={changed({ job: null })}>Show all jobs</a></p> : <Pick label="Team" value={team ?? ""} names={me.teams} onPick={(value) => set({ team: value })} />}
        <Pick label="Owner" value={owner ?? ""} names={me.owners} onPick={(value) => set({ owner: value })} />
        {stage ? <p class="chosen-stage">Only what concerns <Stage of={stage} /> <a href={changed({ stage: null })}>Show all</a></p> : null}
      </Filters>
      {help && stage ? <p class="tip-line"><strong>{named(stage)}.</strong> What mostly helps: {help}</p> : null}
      {asked(query("if")) ? <Change key={query("if")} titles={titles} /> : null}
      {answer.error?.status === 404 ? <Empty title={job ? "There is no advice for this job." : "Advice is not installed here."}><p>{answer.error.message}</p></Empty> : (
        <Shown answer={answer} what="advice: jobs are being replayed, which takes some seconds, with thousands of jobs a minute">{(data) => {
          const most = Math.max(...data.groups.map((one) => (stage ? (one.stage_gpu_h ?? 0) : one.gpu_h)), 0);
          const shown = all ? data.groups : data.groups.slice(0, FIRST);
          const { of_stage: of } = data;
          return (
            <>
              <p class="note">
                {data.sample && !job ? <>From {count(data.sample.jobs)} of {count(data.sample.of_jobs)} jobs{data.sample.share_pct !== null ? ` (${percent(data.sample.share_pct, 0)} of their GPU time)` : ""}. </> : null}
                {of && of.lost_gpu_h > 0 ? <>Of {gpuTime(of.lost_gpu_h)} of {named(of.stage)}, {gpuUnit(of.lost_gpu_h).of(of.after_gpu_h)} would be left with all of this. </> : null}
                {data.base && data.all && data.groups.length ? <>With {stage || owner ? "what is shown" : "all of it"} in place, ETT % would go from {percent(data.base.ett_pct)} to <strong>{percent(data.all.ett_pct)}</strong>; gains do not add up. </> : null}
                {data.replay_error_pct !== null ? <>Without changes the replay is off by {percent(data.replay_error_pct)}.</> : null}
              </p>
              <Section id="remedies" title="Remedies">
                {shown.length ? shown.map((one) => <Remedy key={one.remedy} group={one} entries={one.entries.map((at) => data.advice[at]!)} most={most} stage={stage} job={job !== null} />)
                  : <Empty title="Nothing to gain was found here."><p>{owner || stage ? <a href={changed({ owner: null, stage: null })}>Show all remedies</a> : "Choose a longer time: advice needs some jobs to go by."}</p></Empty>}
                {data.groups.length > FIRST ? <button type="button" class="quiet" aria-expanded={all} onClick={() => setAll(!all)}>{all ? "Show fewer" : `Show all ${data.groups.length}`}</button> : null}
              </Section>
            </>
          );
        }}</Shown>
      )}
      {asked(query("if")) ? null : me.can_advise ? <Change key={`${team} ${stage}`} titles={titles} /> : <Failed text="What-if questions are not allowed here." />}
    </>
  );
}
