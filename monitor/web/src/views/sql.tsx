// Questions of one's own: read-only, with limits that the database keeps.
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused, address, send } from "../api";
import { offered } from "../charts/save";
import { useScene } from "../context";
import { count, span } from "../format";
import { Empty, Failed, Loading } from "../parts/answer";
import { Section } from "../parts/figure";
import { Table } from "../parts/table";
import { set } from "../router";
import type { SqlAnswer } from "../types";

const EXAMPLES: [string, string][] = [
  ["Teams that lost most yesterday", "SELECT team, round(sum(gpu_lost_s) / 3600, 1) AS lost_gpu_hours\nFROM team_daily\nWHERE day = yesterday()\nGROUP BY team\nORDER BY lost_gpu_hours DESC"],
  ["ETT % by day", "SELECT day, round(ett_pct, 1) AS ett_pct, round(gpu_s / 3600) AS gpu_hours, jobs, nof\nFROM fleet_daily\nORDER BY day DESC\nLIMIT 30"],
  ["GPU-hours by component", "SELECT component, round(sum(gpu_s) / 3600, 1) AS gpu_hours\nFROM stage_daily\nWHERE day >= today() - 7\nGROUP BY component\nORDER BY gpu_hours DESC"],
  ["Jobs that started slowest", "SELECT job, team, round(tts_s) AS tts_s, gpus\nFROM jobs\nWHERE tts_s IS NOT NULL\nORDER BY tts_s DESC\nLIMIT 20"],
];

let wanted: string | null = null;

/** A link of this page says that its query shall be run where it leads. Only a click can: an address alone never runs one. */
export function runAtOnce(query: string): void {
  wanted = query;
}

function cell(value: unknown): string {
  return value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

function csv(answer: SqlAnswer): Blob {
  // A leading = + - @ would be a formula in a spreadsheet; numbers are left as they are.
  const quoted = (value: unknown) => {
    const text = cell(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [answer.columns.map((one) => quoted(one.name)), ...answer.rows.map((row) => row.map(quoted))];
  return new Blob([lines.map((line) => line.join(",")).join("\r\n")], { type: "text/csv" });
}

export function SqlView() {
  const { me, place } = useScene();
  const asked = place.query.get("q") ?? "";
  const [text, setText] = useState(asked || EXAMPLES[1]![1]);
  const [state, setState] = useState<{ running: boolean; answer: SqlAnswer | null; problem: string | null }>({ running: false, answer: null, problem: null });
  const number = useRef(0);
  // A link or the back button brings another query; it is not run before somebody looked at it.
  useEffect(() => { if (asked) setText(asked); }, [asked]);
  const run = (told = text) => {
    const query = told.trim();
    if (!query || state.running) return;
    if (query !== asked) set({ q: query });
    const mine = ++number.current;
    setState({ running: true, answer: null, problem: null });
    send<SqlAnswer>("POST", address(["sql"]), { query }).then(
      (answer) => { if (mine === number.current) setState({ running: false, answer, problem: null }); },
      (problem: unknown) => { if (mine === number.current) setState({ running: false, answer: null, problem: problem instanceof Refused ? problem.message : "The answer could not be read." }); },
    );
  };
  useEffect(() => {
    const clicked = wanted !== null && wanted === asked;
    wanted = null;
    if (clicked && me.can_sql) run(asked);
  }, [asked]);
  if (!me.can_sql) return <><div class="head"><h1>SQL</h1></div><Empty title="You may not ask in SQL here."><p>Whoever runs this monitor can allow it.</p></Empty></>;
  const { answer } = state;
  const wide = answer ? answer.columns.map((one) => /^(Nullable\()?(U?Int|Float|Decimal)/.test(one.type)) : [];
  return (
    <>
      <div class="head"><h1>SQL</h1></div>
      <p class="lead small">Ask the tables behind this page. Queries can only read, and their time, memory and rows are limited. Views that end in <code>_hourly</code> and <code>_daily</code> are fast; <code>jobs</code>, <code>attempts</code>, <code>segments</code> and <code>phases</code> tell about single jobs.</p>
      <Section id="query" title="Query" side={(
        <label class="pick"><span>Examples</span>
          <select value="" onChange={(event) => { const found = EXAMPLES[Number((event.target as HTMLSelectElement).value)]; if (found) setText(found[1]); (event.target as HTMLSelectElement).value = ""; }}>
            <option value="">choose …</option>
            {EXAMPLES.map(([name], at) => <option key={name} value={at}>{name}</option>)}
          </select>
        </label>
      )}>
        <label for="sql" class="sr">Query in SQL</label>
        <textarea id="sql" class="sql" rows={8} spellcheck={false} maxLength={20_000} value={text} aria-describedby="sql-keys"
          onInput={(event) => setText((event.target as HTMLTextAreaElement).value)}
          onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); } }} />
        <div class="frame-tools">
          <button type="button" class="primary" onClick={() => run()} disabled={state.running}>Run</button>
          <span class="hint" id="sql-keys">Ctrl and Enter runs it.</span>
        </div>
      </Section>
      <Section id="result" title="Answer" side={answer?.rows.length ? <button type="button" onClick={() => offered(csv(answer), "answer.csv")}>Save as CSV</button> : undefined}>
        {state.running ? <Loading what="the answer" /> : state.problem ? <Failed text={state.problem} /> : answer ? (
          <>
            <p class="note" role="status">{count(answer.rows.length)} {answer.rows.length === 1 ? "row" : "rows"} in {span(answer.elapsed_s)}.{answer.truncated ? " There are more: these are as many as are answered." : ""}</p>
            {answer.rows.length ? (
              <Table label="Answer" plain rows={answer.rows} keyOf={(_, at) => at} columns={answer.columns.map((one, at) => ({
                name: `${at}`, head: <span title={one.type}>{one.name}</span>, number: wide[at],
                cell: (row: unknown[]) => (one.name === "job" && typeof row[at] === "string" ? <a href={`/jobs/${encodeURIComponent(row[at])}`}>{row[at]}</a> : row[at] === null ? <span class="hint">NULL</span> : cell(row[at])),
              }))} />
            ) : <Empty title="No rows fit." />}
          </>
        ) : <p class="hint">Nothing was asked yet.</p>}
      </Section>
    </>
  );
}
