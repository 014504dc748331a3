// Two jobs, models, teams, clusters, weeks or code versions beside each other.
import { address, useAnswer } from "../api";
import { useScene } from "../context";
import { amount, count, moment, percent, signed, span } from "../format";
import { Empty, Loading, Shown } from "../parts/answer";
import { Section } from "../parts/figure";
import { JobLink } from "../parts/jobs";
import { Stage } from "../parts/stage";
import { Table } from "../parts/table";
import { Term } from "../parts/term";
import { RangeBar, usually } from "../range";
import { link, set } from "../router";
import { EFFECTIVE, componentOf, named } from "../terms";
import type { Compare, JobPage, Me, Side, StartRow, UsualStart } from "../types";

const KINDS: Record<string, string> = { job: "Jobs", model: "Models", team: "Teams", cluster: "Clusters", week: "Weeks", version: "Versions" };

/** The ISO week of a moment: 2026-W40. */
export function weekOf(us: number): string {
  const at = new Date(us / 1_000);
  const thursday = Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() - ((at.getUTCDay() + 6) % 7) + 3);
  const year = new Date(thursday).getUTCFullYear();
  return `${year}-W${String(1 + Math.floor((thursday - Date.UTC(year, 0, 1)) / (7 * 86_400_000))).padStart(2, "0")}`;
}

function weeks(me: Me): string[] {
  if (me.first_us === null || me.last_us === null) return [];
  const made: string[] = [];
  for (let at = me.last_us - 1; made.length < 60; at -= 7 * 86_400e6) {
    made.push(weekOf(at));
    if (at <= me.first_us) break;
  }
  return made;
}

interface Line {
  name: string;
  term: string;
  of: (side: Side) => number | null;
  text: (value: number | null) => string;
  more: "good" | "bad" | null;
}

const LINES: Line[] = [
  { name: "ETT %", term: "ETT %", of: (side) => side.ett_pct, text: percent, more: "good" },
  { name: "jobs", term: "", of: (side) => side.jobs, text: count, more: null },
  { name: "all GPU-hours", term: "GPU-hours", of: (side) => side.total_gpu_h, text: amount, more: null },
  { name: "lost GPU-hours", term: "lost GPU-hours", of: (side) => side.lost_gpu_h, text: amount, more: null },
  { name: "time to start", term: "time to start", of: (side) => side.tts_s, text: span, more: "bad" },
  { name: "time to recover, median", term: "time to recover", of: (side) => side.ttr_s, text: span, more: "bad" },
  { name: "failures", term: "failures", of: (side) => side.nof, text: count, more: null },
  { name: "failures per 1,000 GPU-hours", term: "failures per 1,000 GPU-hours", of: (side) => side.nof_per_1000_gpu_h, text: amount, more: "bad" },
];

function Key(props: { kind: string; of: string }) {
  if (props.kind === "job") return <JobLink job={props.of} />;
  if (props.kind === "team") return <a href={link(["teams", props.of])}>{props.of}</a>;
  if (props.kind === "model" || props.kind === "cluster") return <a href={link(["jobs"], { [props.kind]: props.of })}>{props.of}</a>;
  return <>{props.of}</>;
}

function Beside(props: { data: Compare }) {
  const { a, b, kind, differences } = props.data;
  const most = Math.max(...differences.map((one) => Math.abs(one.delta_pct)), 0.001);
  const first = differences.find((one) => componentOf(one.stage) !== EFFECTIVE && Math.abs(one.delta_pct) >= 0.05);
  const better = a.ett_pct !== null && b.ett_pct !== null && Math.abs(a.ett_pct - b.ett_pct) >= 0.1 ? (b.ett_pct > a.ett_pct ? b : a) : null;
  return (
    <>
      <p class="lead">
        {better ? <><strong>{better.key}</strong> uses its GPU time better: {percent(better.ett_pct)} against {percent((better === a ? b : a).ett_pct)}.</> : <>Both use their GPU time about equally well.</>}
        {first ? <> The largest difference is <strong>{named(first.stage)}</strong>: {percent(first.a_pct)} of all GPU time of {a.key}, {percent(first.b_pct)} of {b.key}.</> : null}
      </p>
      <Section id="beside" title="Beside each other">
        <Table label="Figures of both sides" rows={LINES} keyOf={(row) => row.name} columns={[
          { name: "what", head: "figure", first: true, cell: (row) => (row.term ? <Term of={row.term}>{row.name}</Term> : row.name) },
          { name: "a", head: <Key kind={kind} of={a.key} />, number: true, cell: (row) => row.text(row.of(a)) },
          { name: "b", head: <Key kind={kind} of={b.key} />, number: true, cell: (row) => row.text(row.of(b)) },
          {
            name: "delta", head: "second minus first", number: true,
            cell: (row) => {
              const [x, y] = [row.of(a), row.of(b)];
              if (x === null || y === null) return "–";
              const good = row.more === null || y === x ? "" : (y > x) === (row.more === "good") ? "good" : "bad";
              return <span class={good}>{row.text === percent ? `${signed(y - x, (size) => size.toFixed(1))} points` : signed(y - x, row.text)}{good ? <span class="sr"> ({good === "good" ? "better" : "worse"})</span> : null}</span>;
            },
          },
        ]} />
      </Section>
      <Section id="differences" title="What differs" note="Each stage in percent of all GPU time of its side, so that sides of different size can be compared. The greatest difference first.">
        {differences.length ? (
          <Table label="Differences by stage" rows={differences.slice(0, 25)} keyOf={(row) => row.stage} columns={[
            { name: "stage", head: "stage", first: true, cell: (row) => <Stage of={row.stage} /> },
            { name: "a", head: a.key, number: true, cell: (row) => percent(row.a_pct) },
            { name: "b", head: b.key, number: true, cell: (row) => percent(row.b_pct) },
            { name: "delta", head: "difference", number: true, cell: (row) => `${signed(row.delta_pct, (size) => size.toFixed(1))} points` },
            {
              name: "bar", wide: true, head: <span class="sr">as a bar</span>,
              cell: (row) => (
                <span class="both" aria-hidden="true">
                  <span class={row.delta_pct < 0 ? `bg-${componentOf(row.stage)} left` : "left"} style={{ width: `${row.delta_pct < 0 ? (-row.delta_pct / most) * 50 : 0}%` }} />
                  <span class={row.delta_pct > 0 ? `bg-${componentOf(row.stage)} right` : "right"} style={{ width: `${row.delta_pct > 0 ? (row.delta_pct / most) * 50 : 0}%` }} />
                </span>
              ),
            },
            { name: "agpu", head: <>GPU-h, {a.key}</>, number: true, cell: (row) => amount(row.a_gpu_h) },
            { name: "bgpu", head: <>GPU-h, {b.key}</>, number: true, cell: (row) => amount(row.b_gpu_h) },
          ]} />
        ) : <Empty title="Nothing differs." />}
      </Section>
    </>
  );
}

/** Jobs of the same model, to compare one with: that whose start is the median, and the newest. */
function Partners(props: { usual: UsualStart }) {
  const { job, model, middle, recent, starts } = props.usual;
  if (!middle) return <p class="hint">{model ? `No other job of ${model} started in this time.` : "The job names no model, so none can be offered."} Type any name above.</p>;
  const one = (row: StartRow, why: string) => (
    <li key={row.job}><a class="job" href={link(["compare"], { kind: "job", a: job, b: row.job })}>{row.job}</a> <span class="hint">{why}: {span(row.tts_s)} to start, {count(row.gpus)} GPUs, began {moment(row.t0_us)}</span></li>
  );
  return (
    <Section id="partners" title={`Likely ones: other jobs of ${model ?? "its model"}`}>
      <ul class="lines">
        {one(middle, `the median start of this model, of ${count(starts)}`)}
        {recent.filter((row) => row.job !== middle.job).map((row) => one(row, "recent"))}
      </ul>
    </Section>
  );
}

export function CompareView() {
  const { me, place, range } = useScene();
  const kind = place.query.get("kind") && place.query.get("kind")! in KINDS ? place.query.get("kind")! : "model";
  const a = place.query.get("a") ?? "";
  const b = place.query.get("b") ?? "";
  const label = place.query.get("label") ?? "version";
  const dimension = kind === "model" || kind === "team" || kind === "cluster";
  const window = dimension ? { from: range.from, to: range.to } : {};
  const url = a && b ? address(["compare"], { kind, a, b, ...window, ...(kind === "version" ? { label } : {}) }) : null;
  const answer = useAnswer<Compare>(url);
  // Suggestions of jobs: the ones that lost most in the time looked at.
  const some = useAnswer<JobPage>(kind === "job" ? address(["jobs"], { from: range.from, to: range.to, sort: "-lost", page: 1, size: 50 }) : null);
  const usual = useAnswer<UsualStart>(kind === "job" && a && !b ? address(["jobs", a, "usual"], usually(range)) : null);
  const names = kind === "model" ? me.models : kind === "team" ? me.teams : kind === "cluster" ? me.clusters : kind === "week" ? weeks(me) : (some.data?.jobs.map((one) => one.job) ?? []);
  const enter = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? "").trim() || null;
    set({ kind, a: text("a"), b: text("b"), label: kind === "version" ? text("label") : null });
  };
  return (
    <>
      <div class="head">
        <h1>Compare</h1>
        {dimension ? <RangeBar range={range} /> : null}
      </div>
      <nav class="group" aria-label="What to compare">
        {Object.entries(KINDS).map(([name, text]) => (
          <a key={name} class="choice" href={link(["compare"], { kind: name })} aria-current={kind === name ? "true" : undefined}>{text}</a>
        ))}
      </nav>
      <form class="filters" onSubmit={enter} key={`${kind} ${a} ${b} ${label}`}>
        {kind === "version" ? <label class="pick"><span>Label of jobs</span><input name="label" defaultValue={label} spellcheck={false} /></label> : null}
        <label class="pick wide"><span>First</span><input name="a" list="sides" defaultValue={a} required spellcheck={false} autoComplete="off" placeholder={kind === "week" ? "2026-W40" : ""} /></label>
        <label class="pick wide"><span>Second</span><input name="b" list="sides" defaultValue={b} required spellcheck={false} autoComplete="off" placeholder={kind === "week" ? "2026-W41" : ""} /></label>
        <datalist id="sides">{names.map((name) => <option key={name} value={name} />)}</datalist>
        <button type="submit" class="primary">Compare</button>
        {a && b ? <a class="reset" href={link(["compare"], { kind, a: b, b: a, label: kind === "version" ? label : null })}>Swap</a> : null}
      </form>
      {url ? <Shown answer={answer} what="the comparison">{(data) => <Beside data={data} />}</Shown>
        : usual.data ? <Partners usual={usual.data} />
        : usual.loading ? <Loading what="likely ones" />
        : <Empty title="Choose two to compare."><p>{kind === "week" ? "Weeks begin on Monday (UTC)." : kind === "version" ? "Versions are values of a label of jobs, such as the version of the code." : "Start to type, and pick from the names."} The address of a comparison can be shared.</p></Empty>}
    </>
  );
}
