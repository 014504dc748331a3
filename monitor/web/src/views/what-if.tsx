// What if: change a number, and see what the fleet would have done.
import { useEffect, useState } from "preact/hooks";
import type { AdviceFigures, Change as Told, WhatIf, WhatIfAnswer } from "../advice";
import { Refused, address, send } from "../api";
import { useScene } from "../context";
import { amount, count, percent, signed, span } from "../format";
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

function said(change: Told): string {
  if (typeof change === "string") return change;
  return Object.entries(change).filter(([, value]) => value !== null).map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`).join(", ");
}

export function Change() {
  const { me, place, range } = useScene();
  const body = asked(place.query.get("if"));
  const [kind, setKind] = useState("stage");
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
    const form = new FormData(event.target as HTMLFormElement);
    const number = Number(form.get("number"));
    const change = kind === "stage" ? { stage: String(form.get("stage")), factor: number / 100 }
      : kind === "interval" ? { save_interval_s: number * 60 }
      : kind === "best" ? { save_interval_s: "best" }
      : kind === "async" ? { save_blocking: 0 }
      : { detection_s: number };
    const team = String(form.get("team") ?? "").trim();
    const more = form.get("more") === "on" && body ? body.changes : [];
    set({ if: JSON.stringify({ changes: [...more, change], ...(team ? { team } : {}) }) });
  };
  const { answer } = state;
  return (
    <Section id="what-if" title="What if …" note="Change a number: the fleet's jobs are replayed with it, and all figures follow. The address can be shared.">
      <form class="filters" onSubmit={enter}>
        <label class="pick wide"><span>Change</span>
          <select value={kind} onChange={(event) => setKind((event.target as HTMLSelectElement).value)}>
            <option value="stage">the length of a stage</option>
            <option value="interval">how often checkpoints are saved</option>
            <option value="best">checkpoints at the best interval</option>
            <option value="async">saves that block nothing</option>
            <option value="detection">how soon hangs are noticed</option>
          </select>
        </label>
        {kind === "stage" ? (
          <>
            <label class="pick wide"><span>Stage</span>
              <select name="stage">{Object.keys(MEANS).filter((name) => name !== "effective_training").map((name) => <option key={name} value={name} selected={name === "pt2_compilation"}>{named(name)}</option>)}</select>
            </label>
            <label class="pick"><span>to % of what it is</span><input key="stage" name="number" type="number" min="0" max="1000" step="any" defaultValue="50" required /></label>
          </>
        ) : kind === "interval" ? <label class="pick"><span>every … minutes</span><input key="interval" name="number" type="number" min="0.1" max="100000" step="any" defaultValue="15" required /></label>
          : kind === "detection" ? <label class="pick"><span>after … seconds</span><input key="detection" name="number" type="number" min="1" max="1000000" step="any" defaultValue="60" required /></label> : null}
        <label class="pick"><span>For team</span><input name="team" list="what-if-teams" defaultValue={body?.team ?? ""} placeholder="all" autoComplete="off" /></label>
        <datalist id="what-if-teams">{me.teams.map((name) => <option key={name} value={name} />)}</datalist>
        {body ? <label class="check"><input type="checkbox" name="more" /> on top of the changes below</label> : null}
        <button type="submit" class="primary">Replay</button>
        {body ? <button type="button" onClick={() => set({ if: null })}>Close</button> : null}
      </form>
      {body ? (
        <div>
          <p>Asked: {(answer?.changes ?? body.changes.map(said)).join("; ")}{body.team ? `, for team ${body.team}` : ""}.</p>
          {state.running ? <Loading what="; jobs are being replayed, which takes some seconds" /> : state.problem ? <Failed text={state.problem} /> : answer ? (
            <>
              <p class="lead small"><strong>{signed(answer.saved_gpu_h_week, amount)}</strong> GPU-hours a week would come back, {amount(answer.saved_held_gpu_h_week)} of them <Term of="held" />.</p>
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
