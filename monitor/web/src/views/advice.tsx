// Where an hour of work returns most: remedies with what they would give back, and the arithmetic.
import type { AdviceAnswer, Entry } from "../advice";
import { address, useAnswer } from "../api";
import { Bar } from "../charts/stack";
import { useScene } from "../context";
import { amount, count, counted, percent, span } from "../format";
import { Empty, Failed, Shown } from "../parts/answer";
import { Section } from "../parts/figure";
import { Pick } from "../parts/pick";
import { Stage } from "../parts/stage";
import { Term } from "../parts/term";
import { RangeBar } from "../range";
import { changed, link, set } from "../router";
import { componentOf, helps, named } from "../terms";
import { Change, asked } from "./what-if";

const CONFIDENT: Record<string, string> = {
  high: "Replayed on enough of the fleet's own jobs, and the replay without changes agrees with what happened.",
  medium: "Some assumptions or few jobs: take it as an order of size.",
  low: "Few jobs or strong assumptions: look closer before you act on it.",
};

function One(props: { entry: Entry; most: number }) {
  const { entry } = props;
  const body = JSON.stringify(entry.what_if);
  return (
    <article class="advice">
      <div class="advice-head">
        <h3>{entry.title}</h3>
        <span class="gain"><strong>{amount(entry.gpu_h_week)}</strong> <Term of="GPU-hours" /> a week</span>
      </div>
      <Bar value={entry.gpu_h_week} of={props.most} stage={componentOf(entry.stage)} />
      <p>Why this confidence: {entry.why}.</p>
      <p class="hint">
        <Stage of={entry.stage} /> · team {entry.team ? <a href={link(["teams", entry.team])}>{entry.team}</a> : "none named"}
        {entry.owner ? <> · <Term of="owner" /> <a href={link(["owners", entry.owner])}>{entry.owner}</a>{entry.contact ? ` (${entry.contact})` : ""}</> : null}
        {" "}· {counted(entry.jobs, "job")}, {counted(entry.times, "time")} · {amount(entry.held_gpu_h_week)} of it <Term of="held" />
        {" "}· <Term of="confidence" means={CONFIDENT[entry.confidence]}>{entry.confidence} confidence</Term>
      </p>
      <details>
        <summary>Show the arithmetic</summary>
        <ol class="sums">{entry.arithmetic.map((line, at) => <li key={at}>{line}</li>)}</ol>
        {entry.assumptions.length ? <><h4>What was assumed</h4><ul>{entry.assumptions.map((line, at) => <li key={at}>{line}</li>)}</ul></> : null}
        <dl class="pairs">
          <div><dt>ETT %</dt><dd>{percent(entry.before.ett_pct)} → {percent(entry.after.ett_pct)}</dd></div>
          <div><dt>time to start, median</dt><dd>{span(entry.before.tts_p50_s)} → {span(entry.after.tts_p50_s)}</dd></div>
          <div><dt>time to recover, mean</dt><dd>{span(entry.before.ttr_mean_s)} → {span(entry.after.ttr_mean_s)}</dd></div>
          <div><dt>lost GPU-hours</dt><dd>{amount(entry.before.lost_gpu_h)} → {amount(entry.after.lost_gpu_h)}</dd></div>
          {entry.error_pct !== null ? <div><dt>error of the replay</dt><dd>{percent(entry.error_pct)}</dd></div> : null}
        </dl>
      </details>
      <p><a href={changed({ if: body, stage: null })}>Try it with other numbers</a> · <a href={link(["jobs"], { team: entry.team, sort: "-lost" })}>The jobs behind it</a></p>
    </article>
  );
}

export function AdviceView() {
  const { me, place, range } = useScene();
  const query = (name: string) => place.query.get(name);
  const [team, owner, stage] = [query("team"), query("owner"), query("stage")];
  const answer = useAnswer<AdviceAnswer>(address(["advice"], { from: range.from, to: range.to, team: team === "-" ? "" : team }));
  const fits = (one: Entry) => (!owner || one.owner === owner)
    && (!stage || one.stage === stage || one.stage.startsWith(`${stage}.`) || stage.startsWith(`${one.stage}.`));
  const help = stage ? helps(stage) : undefined;
  return (
    <>
      <div class="head">
        <h1>Advice</h1>
        <RangeBar range={range} />
      </div>
      <p class="lead small">What the fleet could get back, by remedy, the most first. Each gain comes from replaying the fleet’s own jobs with the remedy in place, by the same rules as every other figure here.</p>
      <div class="filters">
        <Pick label="Team" value={team ?? ""} names={me.teams} onPick={(value) => set({ team: value })} />
        <Pick label="Owner" value={owner ?? ""} names={me.owners} onPick={(value) => set({ owner: value })} />
        {stage ? <p class="chosen-stage">Only what concerns <Stage of={stage} /> <a href={changed({ stage: null })}>Show all</a></p> : null}
      </div>
      {help && stage ? <p class="tip-line"><strong>{named(stage)}.</strong> What mostly helps: {help}</p> : null}
      {asked(query("if")) ? <Change key={query("if")} /> : null}
      {answer.error?.status === 404 ? <Empty title="Advice is not installed here."><p>{answer.error.message}</p></Empty> : (
        <Shown answer={answer} what="advice; jobs are being replayed, which takes some seconds">{(data) => {
          const rows = data.advice.filter(fits);
          const most = Math.max(...rows.map((one) => one.gpu_h_week), 0);
          return (
            <>
              {data.sample ? <p class="note">From {count(data.sample.jobs)} of {count(data.sample.of_jobs)} jobs{data.sample.share_pct !== null ? ` (${percent(data.sample.share_pct, 0)} of their GPU time)` : ""}.
                {data.base && data.all ? <> With all of it in place, ETT % would go from {percent(data.base.ett_pct)} to <strong>{percent(data.all.ett_pct)}</strong>.</> : null}</p> : null}
              <Section id="remedies" title="Remedies">
                {rows.length ? rows.map((one, at) => <One key={`${one.remedy} ${one.team} ${one.stage} ${at}`} entry={one} most={most} />)
                  : <Empty title="Nothing to gain was found here."><p>{data.advice.length ? <><a href={changed({ owner: null, stage: null })}>Show all remedies</a></> : "Choose a longer time: advice needs some jobs to go by."}</p></Empty>}
              </Section>
            </>
          );
        }}</Shown>
      )}
      {asked(query("if")) ? null : me.can_advise ? <Change /> : <Failed text="What-if questions are not allowed here." />}
    </>
  );
}
