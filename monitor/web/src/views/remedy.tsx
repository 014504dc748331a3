// One remedy: what it gives back, to whom, who can do it, on which jobs and hosts, and the arithmetic.
import type { Entry, Gain, Group } from "../advice";
import { Bar } from "../charts/stack";
import { capital, counted, gpuTime, gpuUnit, percent, span } from "../format";
import { JobLink } from "../parts/jobs";
import { Stage } from "../parts/stage";
import { Table } from "../parts/table";
import { Term } from "../parts/term";
import { changed, link } from "../router";
import { componentOf, named } from "../terms";

const CONFIDENT: Record<string, string> = {
  high: "Replayed on enough of the fleet's own jobs, and the replay without changes agrees with what happened.",
  medium: "Some assumptions or few jobs: take it as an order of size.",
  low: "Few jobs or strong assumptions: look closer before you act on it.",
};
const HOSTS = 5;
const TEAMS = 3;

function Team(props: { of: string | null }) {
  return props.of ? <a href={link(["teams", props.of])}>{props.of}</a> : <>none named</>;
}

/** "22 % of the loss" of a team, a job, or all. */
function share(of: Gain): string {
  return of.lost_pct === null ? "" : `, ${percent(of.lost_pct, of.lost_pct < 10 ? 1 : 0)} of the loss`;
}

function Hosts(props: { of: Entry }) {
  const { hosts } = props.of;
  if (!hosts.length) return null;
  return (
    <p>
      The others waited for {hosts.slice(0, HOSTS).map((one, at) => (
        <span key={one.host}>{at ? "; " : ""}<strong>{one.host}</strong> in {counted(one.attempts, "attempt")} of {one.jobs.slice(0, 2).map((job, n) => <span key={job}>{n ? ", " : ""}<JobLink job={job} /></span>)}{one.jobs.length > 2 ? ` and ${one.jobs.length - 2} more` : ""}</span>
      ))}{hosts.length > HOSTS ? `; and ${hosts.length - HOSTS} more hosts` : ""}.
    </p>
  );
}

/** What is below a remedy for one team. */
function Details(props: { entry: Entry; job: boolean }) {
  const { entry, job } = props;
  const { sum } = entry;
  const lost = gpuUnit(Math.max(sum.lost_before_gpu_h, sum.lost_after_gpu_h));
  const back = gpuUnit(Math.max(...entry.jobs_named.map((one) => one.gpu_h), 0));
  return (
    <>
      <Hosts of={entry} />
      <details>
        <summary>Show the arithmetic</summary>
        <ol class="sums">{entry.arithmetic.map((line, at) => <li key={at}>{line}</li>)}</ol>
        <p>{entry.why_confidence}</p>
        {entry.assumptions.length ? <><h4>What was assumed</h4><ul>{entry.assumptions.map((line, at) => <li key={at}>{line}</li>)}</ul></> : null}
        <dl class="pairs">
          <div><dt>lost {lost.name}</dt><dd>{lost.of(sum.lost_before_gpu_h)} → {lost.of(sum.lost_after_gpu_h)}</dd></div>
          {sum.faster_gpu_h ? <div><dt>and the same training takes less</dt><dd>{gpuTime(sum.faster_gpu_h)}</dd></div> : null}
          <div><dt>ETT %</dt><dd>{percent(entry.before.ett_pct)} → {percent(entry.after.ett_pct)}</dd></div>
          <div><dt>time to start, median</dt><dd>{span(entry.before.tts_p50_s)} → {span(entry.after.tts_p50_s)}</dd></div>
          <div><dt>time to recover, mean</dt><dd>{span(entry.before.ttr_mean_s)} → {span(entry.after.ttr_mean_s)}</dd></div>
          {entry.error_pct !== null ? <div><dt>off in trials by about</dt><dd>{percent(entry.error_pct, 0)}</dd></div> : null}
        </dl>
      </details>
      {entry.jobs_named.length && !job ? (
        <details>
          <summary>The jobs behind it ({entry.jobs_named.length < entry.jobs ? `the ${entry.jobs_named.length} that gain most, of ${entry.jobs}` : entry.jobs})</summary>
          <Table label={`Jobs that gain: ${entry.title}`} rows={entry.jobs_named} keyOf={(row) => row.job} columns={[
            { name: "job", head: "job", first: true, cell: (row) => <JobLink job={row.job} /> },
            { name: "gain", head: <Term of="GPU-hours">{back.name} back</Term>, number: true, cell: (row) => back.of(row.gpu_h) },
            { name: "times", head: "times", number: true, cell: (row) => row.times },
          ]} />
        </details>
      ) : null}
      <p><a class="alone-link" href={changed({ if: JSON.stringify(entry.what_if), stage: null, job: null })}>Try it with other numbers</a></p>
    </>
  );
}

function OfTeam(props: { entry: Entry; job: boolean }) {
  const { entry } = props;
  return (
    <li>
      <details>
        <summary>team {entry.team || "none named"}: {gpuTime(entry.gpu_h)}{share(entry)}</summary>
        <p class="hint"><Team of={entry.team} /> · {counted(entry.jobs, "job")}, {counted(entry.times, "time")}{entry.owner ? <> · <Term of="owner" /> <a href={link(["owners", entry.owner])}>{entry.owner}</a>{entry.contact ? ` (${entry.contact})` : ""}</> : null}</p>
        <Details entry={entry} job={props.job} />
      </details>
    </li>
  );
}

/** One remedy over all teams that gain by it; of a job, `job`. */
export function Remedy(props: { group: Group; entries: Entry[]; most: number; stage: string | null; job: boolean }) {
  const { group, entries, stage, job } = props;
  const only = entries.length === 1 ? entries[0]! : null;
  const back = gpuUnit(group.gpu_h);
  const value = stage ? (group.stage_gpu_h ?? 0) : group.gpu_h;
  return (
    <article class="advice">
      <div class="advice-head">
        <h3>{capital(group.title)}</h3>
        <span class="gain"><strong>{back.of(group.gpu_h)}</strong> <Term of="GPU-hours">{back.name}</Term>{share(group)}</span>
      </div>
      <Bar value={value} of={props.most} stage={componentOf(group.stage)} />
      <p class="hint">
        {stage && group.stage_gpu_h !== null ? <>{gpuTime(group.stage_gpu_h)} of {named(stage)} · </> : null}
        {stage === group.stage ? null : <><Stage of={group.stage} /> · </>}
        {only && !job ? <>team <Team of={only.team} /> · </> : null}
        {group.owners.length ? <><Term of="owner" /> {group.owners.map((one, at) => <span key={one}>{at ? ", " : ""}<a href={link(["owners", one])}>{one}</a></span>)}{only?.contact ? ` (${only.contact})` : ""} · </> : null}
        {job ? null : <>{counted(group.jobs, "job")}, </>}{counted(group.times, "time")}
        {job ? null : <> · {gpuTime(group.gpu_h_week)} a week at this pace</>}
        {" "}· <Term of="confidence" means={CONFIDENT[group.confidence]}>{group.confidence} confidence</Term>
      </p>
      {group.overlaps.length ? <p class="hint">{group.overlaps.slice(0, 3).map((one) => capital(one.text)).join("; ")}.{group.together ? "" : " Not counted in all of it."}</p> : null}
      {only ? <Details entry={only} job={job} /> : (
        <>
          <ul class="teams">{entries.slice(0, TEAMS).map((one) => <OfTeam key={one.team ?? ""} entry={one} job={job} />)}</ul>
          {entries.length > TEAMS ? (
            <details>
              <summary>{counted(entries.length - TEAMS, "more team")}</summary>
              <ul class="teams">{entries.slice(TEAMS).map((one) => <OfTeam key={one.team ?? ""} entry={one} job={job} />)}</ul>
            </details>
          ) : null}
        </>
      )}
    </article>
  );
}
