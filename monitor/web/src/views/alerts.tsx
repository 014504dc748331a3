// What got worse: alerts that fire and fired, what explains them, and silences.
import { useEffect, useState } from "preact/hooks";
import { type Answer, Refused, address, send, useAnswer } from "../api";
import { useScene } from "../context";
import { adviceHref, figuresOf, jobsHref, metricNamed, spoken } from "../alerts";
import { ago, moment, span } from "../format";
import { Severity } from "../parts/alert-lines";
import { Empty, Shown } from "../parts/answer";
import { Section } from "../parts/figure";
import { Filters } from "../parts/filters";
import { changed, link, set } from "../router";
import { componentOf, NAMES, named } from "../terms";
import type { AlertRow, Alerts } from "../types";
import { runAtOnce } from "./sql";

function matchersOf(alert: AlertRow): string {
  return Object.entries(alert.labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
}

/** Of how an alert was made: nothing for readers. */
const MADE = ["alertname", "sort"];

function Label(props: { name: string; value: string }) {
  const { name, value } = props;
  const href = name === "team" ? link(["teams", value]) : name === "owner" ? link(["owners", value])
    : name === "model" || name === "cluster" ? link(["jobs"], { [name]: value, sort: "-lost" }) : null;
  const said = name === "metric" ? metricNamed(value) : componentOf(value) in NAMES ? named(value) : value;
  return <span class="label">{name === "metric" ? "figure" : name}: {href ? <a href={href}>{said}</a> : said}</span>;
}

/** The body without a first line that says the title again. */
function told(alert: AlertRow): string {
  const [first, ...rest] = alert.body.split("\n");
  const again = first!.replace(/\.$/, "").trim() === alert.title.replace(/\.$/, "").trim();
  return (again ? rest.join("\n").trim() : alert.body).split("\n").map(spoken).join("\n");
}

function One(props: { alert: AlertRow; open: boolean; nowUs: number; onSilence: ((text: string) => void) | null }) {
  const { alert } = props;
  const figures = figuresOf(alert);
  return (
    <details class={`alert ${alert.status}`} open={props.open} id={props.open ? "asked" : undefined}>
      <summary>
        <Severity of={alert.severity} /> <strong>{spoken(alert.title)}</strong>{" "}
        <span class="hint">{alert.status === "firing" ? `firing for ${span((props.nowUs - alert.starts_us) / 1e6)}, since ${moment(alert.starts_us)}` : `${moment(alert.starts_us)} to ${moment(alert.ends_us)}`}{alert.silenced ? ", silenced" : ""}</span>
      </summary>
      <p class="plain">{told(alert)}</p>
      <p><a href={adviceHref(alert)}>What to do about it</a> · <a href={jobsHref(alert, props.nowUs)}>The jobs {alert.status === "firing" ? "since then" : "of that time"}</a></p>
      <p>{Object.entries(alert.labels).filter(([name]) => !MADE.includes(name)).map(([name, value]) => <Label key={name} name={name} value={value} />)}</p>
      {figures.length ? <dl class="pairs">{figures.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl> : null}
      <p class="hint">Last looked at {ago(alert.updated_us, props.nowUs)}. <a href={changed({ key: alert.key })}>Link to this alert</a></p>
      {alert.sql.map(([title, query]) => <p key={title}><a href={`/sql?q=${encodeURIComponent(query)}`} onClick={() => runAtOnce(query)}>{spoken(title)}</a> <span class="hint">(asks the tables)</span></p>)}
      {props.onSilence && alert.status === "firing" ? <button type="button" onClick={() => props.onSilence?.(matchersOf(alert))}>Silence …</button> : null}
    </details>
  );
}

function Silence(props: { text: string; onText: (text: string) => void; answer: Answer<Alerts> }) {
  const [said, setSaid] = useState<{ text: string; bad: boolean } | null>(null);
  const enter = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    send("POST", address(["alerts", "silences"]), { matchers: props.text, hours: Number(form.get("hours")), comment: String(form.get("comment") ?? "") }).then(
      () => { setSaid({ text: "Silenced.", bad: false }); props.onText(""); props.answer.again(); },
      (problem: unknown) => setSaid({ text: problem instanceof Refused ? problem.message : "It could not be sent.", bad: true }),
    );
  };
  return (
    <form class="filters" onSubmit={enter}>
      <label class="pick wide"><span>Alerts whose labels are</span>
        <input name="matchers" id="matchers" value={props.text} required maxLength={1_000} spellcheck={false} placeholder={'team="ads", severity=~"info|warning"'}
          onInput={(event) => props.onText((event.target as HTMLInputElement).value)} /></label>
      <label class="pick"><span>For hours</span><input name="hours" type="number" min="0.25" max="2160" step="0.25" defaultValue="4" required /></label>
      <label class="pick wide"><span>Why</span><input name="comment" maxLength={500} /></label>
      <button type="submit" class="primary">Silence</button>
      {said ? <p role={said.bad ? "alert" : "status"} class={said.bad ? "problem" : "hint"}>{said.text}</p> : null}
    </form>
  );
}

export function AlertsView() {
  const { me, place } = useScene();
  const [text, setText] = useState("");
  const answer = useAnswer<Alerts>(address(["alerts"]), { live: true });
  const key = place.query.get("key");
  const words = (place.query.get("q") ?? "").toLowerCase();
  const severity = place.query.get("severity") ?? "";
  const fits = (one: AlertRow) => (!severity || one.severity === severity)
    && (!words || `${one.title} ${spoken(one.title)} ${one.body} ${Object.values(one.labels).join(" ")}`.toLowerCase().includes(words));
  useEffect(() => { if (key && answer.data) document.getElementById("asked")?.scrollIntoView({ block: "center" }); }, [key, answer.data === null]);
  return (
    <>
      <div class="head"><h1>Alerts</h1></div>
      <p class="lead small">An alert fires when a figure of a team, owner, model or cluster got worse than it used to be, by more than chance explains. It says what moved, since when, and what explains most of it.</p>
      <Filters set={(words ? 1 : 0) + (severity ? 1 : 0)}>
        <label class="pick wide"><span>Holds</span><input type="search" value={words} onInput={(event) => set({ q: (event.target as HTMLInputElement).value, key: null }, { replace: true })} placeholder="any words" /></label>
        <label class="pick"><span>Severity</span>
          <select value={severity} onChange={(event) => set({ severity: (event.target as HTMLSelectElement).value, key: null })}>
            <option value="">all</option><option>critical</option><option>warning</option><option>info</option>
          </select>
        </label>
      </Filters>
      <Shown answer={answer} what="alerts">{(data) => {
        const rows = data.alerts.filter(fits);
        const firing = rows.filter((one) => one.status === "firing");
        const over = rows.filter((one) => one.status !== "firing");
        const silence = data.can_silence ? (matchers: string) => { setText(matchers); document.getElementById("matchers")?.focus(); } : null;
        const list = (ones: AlertRow[]) => ones.map((one) => <One key={`${one.key} ${one.episode}`} alert={one} open={one.key === key} nowUs={me.now_us} onSilence={silence} />);
        return (
          <>
            <Section id="firing" title={`Firing (${firing.length})`}>
              {firing.length ? list(firing) : <Empty title="Nothing fires."><p>Nothing got notably worse{words || severity ? " among what fits" : ""}. Who should be told, and how, is set up for <code>ettwatch alerts</code>.</p></Empty>}
            </Section>
            {over.length ? <Section id="over" title={`Over (${over.length})`}>{list(over.slice(0, 100))}</Section> : null}
            <Section id="silences" title="Silences" note="A silence keeps alerts from being told; they are still shown here.">
              {data.silences.length ? (
                <ul class="lines">{data.silences.map((one) => <li key={one.number}><code>{one.matchers}</code> until {moment(one.ends_us)} UTC{one.comment ? `: ${one.comment}` : ""}</li>)}</ul>
              ) : <p class="hint">None.</p>}
              {data.can_silence ? <Silence text={text} onText={setText} answer={answer} /> : <p class="hint">To add one, sign in as an operator.</p>}
            </Section>
          </>
        );
      }}</Shown>
    </>
  );
}
