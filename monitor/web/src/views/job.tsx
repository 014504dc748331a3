// One job: what it did with its time, attempt by attempt, and the numbers beside.
import { useMemo } from "preact/hooks";
import type { Whose } from "../alerts";
import { address, useAnswer } from "../api";
import { Stack } from "../charts/stack";
import { Timeline as Drawn } from "../charts/timeline";
import { useScene } from "../context";
import { count, gpuUnit, moment, percent, span } from "../format";
import { Empty, Failed, Loading, Shown } from "../parts/answer";
import { Fitting } from "../parts/alert-lines";
import { Facts, Figure, Section } from "../parts/figure";
import { Status } from "../parts/jobs";
import { Stage } from "../parts/stage";
import { Table } from "../parts/table";
import { Term } from "../parts/term";
import { usually } from "../range";
import { link, set } from "../router";
import { COMPONENTS, EFFECTIVE, LIVE, componentOf } from "../terms";
import type { AttemptRow, JobDetail, Timeline, UsualStart } from "../types";
import { Late, Start, lateIn } from "./job-start";

const FLAGS: Record<string, string> = {
  inferred_end: "The end of an attempt was not told; it was taken from the last event.",
  zombie: "Something spoke after its attempt was over; that was ignored.",
  position_reset: "A counter of the data position began anew; it was counted on.",
  rollback: "The data position went back within an attempt.",
  negative_span: "A phase was told to end before it began; it counts for nothing.",
  id_conflict: "Two different events had the same id; one of them counts.",
};

function Ended(props: { of: AttemptRow }) {
  const { of } = props;
  if (of.open) return <span>runs</span>;
  const bad = of.outcome === "failed" || of.outcome === "preempted";
  return (
    <span class={bad ? "bad" : undefined}>
      {of.outcome ?? "unknown"}{of.cause ? `: ${of.cause.replaceAll("_", " ")}` : ""}
      {of.exit_code !== null && of.exit_code !== 0 ? ` (exit ${of.exit_code})` : ""}{of.signal !== null ? ` (signal ${of.signal})` : ""}
    </span>
  );
}

/** What ran in the shadow of something longer, the most first. A phase that only holds others is none of it. */
function hidden(job: JobDetail, told: Timeline | null): [string, number][] {
  const holds = new Set(told?.phases.filter((row) => row.container).map((row) => row.phase));
  return Object.entries(job.hidden_s).filter(([phase]) => !holds.has(phase)).sort((a, b) => b[1] - a[1]);
}

/** Where an attempt ran, and whom it waited for before its first batch. */
function Hosts(props: { of: AttemptRow; told: Timeline | null }) {
  const { of, told } = props;
  const late = told ? lateIn(told, of.attempt, of.first_batch_us ?? of.end_us, ((of.first_batch_us ?? of.end_us) - of.start_us) / 1e6) : null;
  if (!of.hosts.length && !late) return <>–</>;
  return (
    <span title={of.hosts.join(", ")}>
      {of.hosts[0]}{of.hosts.length > 1 ? ` and ${of.hosts.length - 1} more` : ""}
      {late ? <span class="hint"> {of.hosts.length ? "· " : ""}waited {span(late.seconds)} for <Late of={late} /></span> : null}
    </span>
  );
}

/** Whose alerts concern a job: its own team, model and cluster, and the owners of the stages that cost it most. */
function whoseOf(job: JobDetail): Whose {
  const costly = Object.entries(job.stages).filter(([stage]) => componentOf(stage) !== EFFECTIVE).sort((a, b) => b[1] - a[1]).slice(0, 5);
  return { teams: [job.row.team], models: [job.row.model], clusters: [job.row.cluster], owners: costly.map(([stage]) => job.owners[stage]?.team ?? "") };
}

function Attempts(props: { rows: AttemptRow[]; told: Timeline | null }) {
  const most = Math.max(...props.rows.map((row) => row.duration_s), 0);
  return (
    <Table label="Attempts" rows={props.rows} keyOf={(row) => row.attempt} columns={[
      { name: "attempt", head: <Term of="attempt" />, first: true, cell: (row) => <button type="button" class="linkish" onClick={() => set({ zf: row.start_us, zt: row.end_us })}>{row.attempt}<span class="sr">: show in the timeline</span></button> },
      { name: "from", head: "from (UTC)", cell: (row) => <span class="nowrap">{moment(row.start_us, true)}</span> },
      { name: "for", head: "ran for", number: true, cell: (row) => span(row.duration_s) },
      { name: "gpus", head: "GPUs", number: true, cell: (row) => count(row.gpus) },
      { name: "tts", head: "to first batch", number: true, cell: (row) => span(row.tts_s ?? row.ttr_s) },
      { name: "eff", head: "effective", number: true, cell: (row) => span(row.effective_s) },
      { name: "unsaved", head: <Term of="unsaved work" />, number: true, cell: (row) => span(row.unsaved_s) },
      { name: "bar", head: "made up of", wide: true, bare: true, cell: (row) => <Stack parts={{ ...row.components, [EFFECTIVE]: row.effective_s }} of={most} text={span} effective label={`Attempt ${row.attempt}`} /> },
      { name: "hosts", head: "hosts", wide: true, cell: (row) => <Hosts of={row} told={props.told} /> },
      { name: "end", head: "ended", cell: (row) => <Ended of={row} /> },
      { name: "message", head: "message", wide: true, cell: (row) => (row.message ? <code class="message" title={row.message}>{row.message}</code> : "–") },
    ]} />
  );
}

function Numbers(props: { job: JobDetail }) {
  const { job } = props;
  const rows = [EFFECTIVE, ...COMPONENTS].map((name) => ({ name, depth: 0, seconds: name === EFFECTIVE ? job.effective_s : (job.components[name] ?? 0) }));
  const gpuHours = (row: { name: string; depth: number }) => (row.depth
    ? (job.stages_gpu_h[row.name] ?? 0)
    : Object.entries(job.stages_gpu_h).reduce((sum, [stage, value]) => sum + (componentOf(stage) === row.name ? value : 0), 0));
  const unit = gpuUnit(Math.max(...rows.map(gpuHours)));
  const lines = rows.flatMap((row) => [
    row,
    ...Object.entries(job.stages).filter(([stage]) => stage !== row.name && componentOf(stage) === row.name && stage.includes("."))
      .sort((a, b) => b[1] - a[1]).map(([name, seconds]) => ({ name, depth: 1, seconds })),
  ]);
  return (
    <Table label="Seconds by component and stage" plain rows={lines} keyOf={(row) => row.name} columns={[
      { name: "stage", head: "charged to", first: true, cell: (row) => <span class={row.depth ? "indent" : "whole"}><Stage of={row.name} short={row.depth > 0} /></span> },
      { name: "time", head: "time", number: true, cell: (row) => span(row.seconds) },
      { name: "share", lesser: true, head: <>of <Term of="wall time" /></>, number: true, cell: (row) => percent(job.row.e2e_s > 0 ? (row.seconds / job.row.e2e_s) * 100 : null) },
      { name: "gpu", lesser: true, head: <Term of="GPU-hours">{unit.name}</Term>, number: true, cell: (row) => unit.of(gpuHours(row)) },
      { name: "owner", head: <Term of="owner" />, cell: (row) => { const owner = job.owners[row.name]; return owner && row.seconds > 0 && row.name !== EFFECTIVE ? <a href={link(["owners", owner.team])}>{owner.team}</a> : ""; } },
    ]} />
  );
}

export function JobView(props: { job: string }) {
  const { place, range } = useScene();
  const { job } = props;
  const detail = useAnswer<JobDetail>(address(["jobs", job]), { live: true });
  const whole = useAnswer<Timeline>(address(["jobs", job, "timeline"]), { live: true });
  const usual = useAnswer<UsualStart>(address(["jobs", job, "usual"], usually(range)));
  const zf = Number(place.query.get("zf")) || null;
  const zt = Number(place.query.get("zt")) || null;
  const zoomed = zf !== null && zt !== null && zt > zf;
  // A long job has more stretches than one answer: ask for the part that is looked at.
  const finer = useAnswer<Timeline>(zoomed && whole.data?.truncated ? address(["jobs", job, "timeline"], { from: zf, to: zt }) : null);
  const told = useMemo(() => {
    if (!whole.data) return null;
    return zoomed && finer.data && finer.data.from_us <= zf! && finer.data.to_us >= zt! - 1
      ? { ...finer.data, t0_us: whole.data.t0_us, t1_us: whole.data.t1_us } : whole.data;
  }, [whole.data, finer.data, zf, zt]);
  const both = { ...detail, again: () => { detail.again(); whole.again(); } };
  if (detail.error?.status === 404) {
    return <Empty title={`There is no job named ${job}.`}><p>{detail.error.message}</p><p><a href={`/jobs?q=${encodeURIComponent(job)}`}>Look for jobs whose name holds it</a></p></Empty>;
  }
  return (
    <>
      <div class="head"><h1><span class="kind">Job</span> <span class="job">{job}</span></h1></div>
      <Shown answer={both} what={`job ${job}`}>{(data) => {
        const { row } = data;
        const lost = gpuUnit(row.lost_gpu_h);
        const from = told ? Math.max(zoomed ? zf! : told.t0_us, told.t0_us) : 0;
        const to = told ? Math.min(zoomed ? zt! : told.t1_us, told.t1_us) : 0;
        return (
          <>
            <p class="crumbs">
              <Status of={row.status} />
              {row.team ? <> · team <a href={link(["teams", row.team])}>{row.team}</a></> : null}
              {row.model ? <> · model <a href={link(["jobs"], { model: row.model })}>{row.model}</a></> : null}
              {row.cluster ? <> · cluster <a href={link(["jobs"], { cluster: row.cluster })}>{row.cluster}</a></> : null}
              <> · {count(row.gpus)} GPUs · {moment(row.t0_us)} to {LIVE.includes(row.status) ? "now" : moment(row.t1_us)} UTC</>
              {Object.entries(data.labels).map(([name, value]) => <span key={name} class="label">{name}={value}</span>)}
            </p>
            <p class="crumbs">
              <a href={link(["compare"], { kind: "job", a: job })}>Compare with another job</a> · <a href={link(["advice"], { job })}>What to do about it</a> · <a href={`/api/v1/export/jobs/${encodeURIComponent(job)}/trace.json`} download>Trace for Perfetto or Chrome</a>
            </p>
            <Fitting whose={whoseOf(data)} of="jobs like this one" />
            <Facts>
              <Figure name={<Term of="ETT %" />} value={percent(row.ett_pct)} sub={`${span(data.effective_s)} of ${span(row.e2e_s)}`} href="#numbers" explains="Where the rest went" />
              <Figure name={<Term of="lost GPU-hours">lost {lost.name}</Term>} value={lost.of(row.lost_gpu_h)} sub={row.worst_stage ? <>the largest part to <Stage of={row.worst_stage} /></> : null} href="#numbers" explains="By stage" />
              <Figure name={<Term of="time to start" />} value={span(row.tts_s)} sub={row.tts_s === null ? "no first batch in attempt 0" : null} href={told && data.attempts.length ? "#start" : undefined} explains={row.tts_s === null ? "What took its time" : "Why it took that long"} />
              <Figure name={<Term of="time to recover">recovering</Term>} value={span(row.recovery_s)} sub={data.ttr_s.length ? `times to recover: ${data.ttr_s.slice(0, 4).map(span).join(", ")}${data.ttr_s.length > 4 ? " …" : ""}` : "nothing to recover from"} href="#attempts" explains="Attempt by attempt" />
              <Figure name={<Term of="failures" />} value={count(row.nof)} sub={`${count(data.nof_preempted)} preempted, ${count(data.nof_infra)} not by user code or configuration`} href="#attempts" explains="How they ended" />
              <Figure name={<Term of="unsaved work" />} value={span(data.unsaved_s)} sub="training that failures threw away" href="#attempts" explains="In which attempts" />
            </Facts>
            <Section id="timeline" title="Timeline" note={told?.truncated && !zoomed ? "This job has more stretches than are drawn at once: the longest are here. Zoom in to see all." : undefined}>
              {told ? (told.segments.length ? (
                <Drawn told={told} attempts={data.attempts} from={from} to={to} onView={(a, b) => set({ zf: a, zt: b })} />
              ) : <Empty title="Nothing was charged yet."><p>The job was submitted, and no time has passed since.</p></Empty>)
                : whole.error ? <Failed text={whole.error.message} again={whole.again} /> : <Loading what="the timeline" />}
            </Section>
            {told && whole.data ? <Start job={data} told={whole.data} usual={usual.data} /> : null}
            <div class="columns even tables">
              <Section id="numbers" title="Where its time went"><Numbers job={data} /></Section>
              <div>
                <Section id="stragglers" title={<Term of="straggler">Stragglers</Term>} note="Phases in which one rank kept the others waiting.">
                  {data.stragglers.length ? (
                    <Table label="Stragglers" rows={data.stragglers} keyOf={(one, at) => `${one.phase} ${at}`} columns={[
                      { name: "phase", head: "phase", first: true, cell: (one) => <Stage of={one.phase} /> },
                      { name: "rank", head: <Term of="rank">last rank</Term>, number: true, cell: (one) => <span title={`${one.ranks} ranks told of this phase`}>{one.last_rank}</span> },
                      { name: "host", head: "its host", cell: (one) => one.last_host ?? "–" },
                      { name: "behind", head: "behind", number: true, cell: (one) => span(one.behind_s) },
                      { name: "attempt", head: "attempt", number: true, cell: (one) => one.attempt },
                      { name: "see", head: <span class="sr">see</span>, cell: (one) => <button type="button" class="linkish" onClick={() => { set({ zf: one.start_us, zt: one.end_us }); document.getElementById("timeline")?.scrollIntoView(); }}>Show</button> },
                    ]} />
                  ) : <p class="hint">None: no rank kept the others waiting, or only one rank reports its phases.</p>}
                </Section>
                <Section id="hidden" title={<Term of="hidden work">Hidden work</Term>} note="Ran beside something longer. Making it faster gains nothing.">
                  {hidden(data, told).length ? (
                    <Table label="Hidden work" rows={hidden(data, told).slice(0, 12)} keyOf={(one) => one[0]} columns={[
                      { name: "phase", head: "phase", first: true, cell: (one) => <Stage of={one[0]} /> },
                      { name: "for", head: "hidden for", number: true, cell: (one) => span(one[1]) },
                    ]} />
                  ) : <p class="hint">None.</p>}
                </Section>
              </div>
            </div>
            <Section id="attempts" title="Attempts">
              {data.attempts.length ? <Attempts rows={data.attempts} told={whole.data} /> : <Empty title="No attempt yet: the job waits for hardware." />}
            </Section>
            {data.flags.length ? (
              <Section id="flags" title="Oddities in its events"><ul>{data.flags.map((flag) => <li key={flag}><code>{flag}</code>: {FLAGS[flag] ?? "see the rules"}</li>)}</ul></Section>
            ) : null}
            <p class="hint">As of {moment(data.as_of_us, true)} UTC, by rules {data.rules_version}.</p>
          </>
        );
      }}</Shown>
    </>
  );
}
