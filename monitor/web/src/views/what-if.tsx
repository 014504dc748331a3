// What if: change a number, and see what the fleet would have done.
import { useEffect, useState } from "preact/hooks";
import type { AdviceFigures, Change as Told, WhatIf, WhatIfAnswer } from "../advice";
import { Refused, address, send } from "../api";
import { useScene } from "../context";
import { amount, capital, count, gpuUnit, percent, signed, span } from "../format";
import { Failed, Loading } from "../parts/answer";
import { Section } from "../parts/figure";
import { Table } from "../parts/table";
import { Term } from "../parts/term";
import { set } from "../router";
import { MEANS, named } from "../terms";

/** The question in the address; null where there is none, or none that can be read. */
export function asked(text: string | null): WhatIf | null {
  if (!text) return null;
  try {
    const body = JSON.parse(text) as WhatIf;
    return Array.isArray(body.changes) && body.changes.length ? body : null;
  } catch {
    return null;
  }
}

const ROWS: [string, string, (of: AdviceFigures) => number | null, (value: number | null) => string][] = [
  ["ETT %", "ETT %", (of) => of.ett_pct, percent],
  ["time to start, median", "time to start", (of) => of.tts_p50_s, span],
  ["time to recover, mean", "time to recover", (of) => of.ttr_mean_s, span],
  ["lost GPU-hours", "lost GPU-hours", (of) => of.lost_gpu_h, amount],
  ["GPU-hours held", "held", (of) => of.held_gpu_h, amount],
];

/** What follows from other things has no number of its own. */
const DERIVED = ["effective_training", "wasted_training", "wasted_training.rework", "wasted_training.no_progress", "wasted_training.hang"];
const STAGES = Object.keys(MEANS).filter((name) => !DERIVED.includes(name));

interface Form {
  kind: string;
  stage: string;
  number: number | null;
  remedy: string;
}

/** The number that a remedy turns, and to what. The others are all or nothing. */
const TURNED: Record<string, Partial<Form>> = {
  compile_cache: { kind: "stage", stage: "pt2_compilation", number: 12.5 },
  compile_cache_per_job: { kind: "stage", stage: "pt2_compilation", number: 50 },
  dynamic_shapes: { kind: "stage", stage: "pt2_compilation.recompile", number: 10 },
  autotune_budget: { kind: "stage", stage: "pt2_compilation.autotune", number: 25 },
  publish_off_gpus: { kind: "stage", stage: "shutdown.model_publish", number: 0 },
  overlap_startup: { kind: "stage", stage: "trainer_init", number: 50 },
  keep_hosts: { kind: "stage", stage: "scheduling", number: 20 },
  async_saves: { kind: "blocking", number: 20 },
  save_interval: { kind: "interval" },
  fast_detection: { kind: "detection", number: 60 },
};

function ofStage(stage: string): Partial<Form> {
  if (stage === "wasted_training.rework") return { kind: "interval" };
  if (stage === "wasted_training.checkpoint_save") return { kind: "blocking" };
  if (stage === "wasted_training.hang" || stage === "wasted_training.no_progress") return { kind: "detection" };
  return DERIVED.includes(stage) ? {} : { kind: "stage", stage };
}

/** What the form begins with: the question that is asked, else the stage that it came from. */
export function begun(body: WhatIf | null, stage: string | null): Form {
  const form = { kind: "stage", stage: "pt2_compilation", number: null, remedy: "" };
  const change = body?.changes[0];
  if (change === undefined) return { ...form, ...(stage ? ofStage(stage) : {}) };
  if (typeof change === "string") return form;
  const number = (name: string, by: number) => (typeof change[name] === "number" ? (change[name] as number) * by : null);
  if (typeof change.remedy === "string") {
    const turned = TURNED[change.remedy] ?? { kind: "remedy" };
    return { ...form, ...turned, remedy: change.remedy };
  }
  if (typeof change.stage === "string") return { ...form, stage: change.stage, number: number("factor", 100) };
  if (change.save_interval_s === "best") return { ...form, kind: "best" };
  if ("save_interval_s" in change) return { ...form, kind: "interval", number: number("save_interval_s", 1 / 60) };
  if ("save_blocking" in change) return { ...form, kind: "blocking", number: number("save_blocking", 100) };
  return "detection_s" in change ? { ...form, kind: "detection", number: number("detection_s", 1) } : form;
}

/** For which team a question is asked: of all, or of its one change. */
export function teamOf(body: WhatIf | null): string | null {
  if (!body) return null;
  const change = body.changes[0];
  return body.team ?? (change && typeof change !== "string" && typeof change.team === "string" ? change.team : null);
}

function said(change: Told, titles: Record<string, string>): string {
  if (typeof change === "string") return change;
  const value = (name: string) => Number(change[name]);
  const words = typeof change.remedy === "string" ? (titles[change.remedy] ?? change.remedy.replaceAll("_", " "))
    : typeof change.stage === "string" ? `${named(change.stage)} at ${percent(value("factor") * 100, 0)} of its length`
    : change.save_interval_s === "best" ? "checkpoints at the best interval"
    : "save_interval_s" in change ? `checkpoints every ${span(value("save_interval_s"))}`
    : "save_blocking" in change ? (value("save_blocking") ? `saves block ${percent(value("save_blocking") * 100, 0)} as long` : "saves block nothing")
    : "detection_s" in change ? `hangs are noticed after ${span(value("detection_s"))}` : "a change";
  const whose = ["team", "model", "cluster"].filter((name) => change[name]).map((name) => `${name} ${String(change[name])}`).join(", ");
  return whose ? `${words} (${whose})` : words;
}

/** `titles` are those of the remedies that the advice tells of, by name. */
export function Change(props: { titles: Record<string, string> }) {
  const { me, place, range } = useScene();
  const body = asked(place.query.get("if"));
  const form = begun(body, place.query.get("stage"));
  const team = body ? teamOf(body) : place.query.get("team");
  const [kind, setKind] = useState(form.kind);
  const stages = STAGES.includes(form.stage) ? STAGES : [form.stage, ...STAGES];
  // Of another kind than the form began with, the usual number.
  const best = /every (\d+) min/.exec(props.titles.save_interval ?? "")?.[1];
  const first = (of: string, usual: number) => String(form.kind === of && form.number !== null ? Number(form.number.toFixed(2)) : usual);
  const [state, setState] = useState<{ running: boolean; answer: WhatIfAnswer | null; problem: string | null }>({ running: false, answer: null, problem: null });
  const question = place.query.get("if");
  useEffect(() => {
    if (!body) return undefined;
    let mine = true;
    setState({ running: true, answer: null, problem: null });
    send<WhatIfAnswer>("POST", address(["advice", "what-if"], { from: range.from, to: range.to }), body).then(
      (answer) => { if (mine) setState({ running: false, answer, problem: null }); },
      (problem: unknown) => { if (mine) setState({ running: false, answer: null, problem: problem instanceof Refused ? problem.message : "The answer could not be read." }); },
    );
    return () => { mine = false; };
  }, [question, range.from, range.to]);

  const enter = (event: SubmitEvent) => {
    event.preventDefault();
    const told = new FormData(event.target as HTMLFormElement);
    const number = Number(told.get("number"));
    const change = kind === "stage" ? { stage: String(told.get("stage")), factor: number / 100 }
      : kind === "interval" ? { save_interval_s: number * 60 }
      : kind === "best" ? { save_interval_s: "best" }
      : kind === "blocking" ? { save_blocking: number / 100 }
      : kind === "remedy" ? { remedy: String(told.get("remedy")) }
      : { detection_s: number };
    const whose = String(told.get("team") ?? "").trim();
    const more = told.get("more") === "on" && body ? body.changes : [];
    set({ if: JSON.stringify({ changes: [...more, change], ...(whose && whose !== "-" ? { team: whose } : {}) }) });
  };
  const { answer } = state;
  const remedies = [...new Set([...Object.keys(props.titles), ...(form.remedy ? [form.remedy] : [])])];
  const back = gpuUnit(answer?.saved_gpu_h_week ?? 0);
  return (
    <Section id="what-if" title="What if …" note="Change a number: the fleet's jobs are replayed with it, and all figures follow. The address can be shared.">
      <form class="filters" onSubmit={enter}>
        <label class="pick wide"><span>Change</span>
          <select value={kind} onChange={(event) => setKind((event.target as HTMLSelectElement).value)}>
            <option value="stage">the length of a stage</option>
            <option value="interval">how often checkpoints are saved</option>
            <option value="best">checkpoints at the best interval</option>
            <option value="blocking">how long saves block</option>
            <option value="detection">how soon hangs are noticed</option>
            {remedies.length ? <option value="remedy">a remedy as it is advised</option> : null}
          </select>
        </label>
        {kind === "stage" ? (
          <>
            <label class="pick wide"><span>Stage</span>
              <select name="stage">{stages.map((name) => <option key={name} value={name} selected={name === form.stage}>{named(name)}</option>)}</select>
            </label>
            <label class="pick"><span>to % of what it is</span><input key="stage" name="number" type="number" min="0" max="1000" step="any" defaultValue={first("stage", 50)} required /></label>
          </>
        ) : kind === "interval" ? <label class="pick"><span>every … minutes</span><input key="interval" name="number" type="number" min="0.1" max="100000" step="any" defaultValue={first("interval", Number(best ?? 15))} required /></label>
          : kind === "detection" ? <label class="pick"><span>after … seconds</span><input key="detection" name="number" type="number" min="1" max="1000000" step="any" defaultValue={first("detection", 60)} required /></label>
          : kind === "blocking" ? <label class="pick"><span>to % of what it is</span><input key="blocking" name="number" type="number" min="0" max="100" step="any" defaultValue={first("blocking", 20)} required /></label>
          : kind === "remedy" ? <label class="pick wide"><span>Remedy</span><select name="remedy">{remedies.map((name) => <option key={name} value={name} selected={name === form.remedy}>{capital(props.titles[name] ?? name.replaceAll("_", " "))}</option>)}</select></label> : null}
        <label class="pick"><span>For team</span><input name="team" list="what-if-teams" defaultValue={team ?? ""} placeholder="all" autoComplete="off" /></label>
        <datalist id="what-if-teams">{me.teams.map((name) => <option key={name} value={name} />)}</datalist>
        {body ? <label class="check"><input type="checkbox" name="more" /> on top of the changes below</label> : null}
        <button type="submit" class="primary">Replay</button>
        {body ? <button type="button" onClick={() => set({ if: null })}>Close</button> : null}
      </form>
      {body ? (
        <div>
          <p>Asked: {body.changes.map((one) => said(one, props.titles)).join("; ")}{body.team ? `, for team ${body.team}` : ""}.</p>
          {state.running ? <Loading what="the answer: jobs are being replayed, which takes some seconds, with thousands of jobs a minute" /> : state.problem ? <Failed text={state.problem} /> : answer ? (
            <>
              <p class="lead small"><strong>{signed(answer.saved_gpu_h_week, back.of)}</strong> {back.name} a week would come back, {back.of(answer.saved_held_gpu_h_week)} of them <Term of="held" />.</p>
              <Table label="Before and after" rows={ROWS} keyOf={(row) => row[0]} columns={[
                { name: "what", head: "figure", first: true, cell: ([name, term]) => <Term of={term}>{name}</Term> },
                { name: "now", head: "as it was", number: true, cell: ([, , of, text]) => text(of(answer.before)) },
                { name: "then", head: "with the change", number: true, cell: ([, , of, text]) => text(of(answer.after)) },
              ]} />
              {Object.keys(answer.by_team).length > 1 ? (
                <Table label="By team" rows={Object.entries(answer.by_team).sort((x, y) => y[1] - x[1]).slice(0, 10)} keyOf={(row) => row[0]} columns={[
                  { name: "team", head: "team", first: true, cell: ([name]) => name || "none named" },
                  { name: "value", head: "GPU-hours a week", number: true, cell: (row) => amount(row[1]) },
                ]} />
              ) : null}
              {answer.sample ? <p class="hint">Replayed: {count(answer.sample.jobs)} of {count(answer.sample.of_jobs)} jobs.{answer.replay_error_pct !== null ? ` Without changes the replay is off by ${percent(answer.replay_error_pct)}.` : ""}</p> : null}
              {answer.notes.length ? <ul>{answer.notes.map((note, at) => <li key={at}>{note}</li>)}</ul> : null}
            </>
          ) : null}
        </div>
      ) : null}
    </Section>
  );
}
