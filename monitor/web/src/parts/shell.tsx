// Head, navigation and foot around every view.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { address, send } from "../api";
import { useScene } from "../context";
import { ago, moment } from "../format";
import { useLive } from "../live";
import { link } from "../router";

const VIEWS: [string, string][] = [
  ["", "Fleet"], ["jobs", "Jobs"], ["compare", "Compare"], ["alerts", "Alerts"], ["advice", "Advice"], ["sql", "SQL"],
];

function Theme() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "system");
  const choose = (event: Event) => {
    const chosen = (event.target as HTMLSelectElement).value;
    setTheme(chosen);
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    try {
      if (chosen === "system") localStorage.removeItem("ettwatch-theme");
      else localStorage.setItem("ettwatch-theme", chosen);
    } catch {
      // Not kept, then.
    }
  };
  return (
    <label class="theme"><span class="sr">Colours</span>
      <select value={theme} onChange={choose}>
        <option value="system">Auto</option><option value="light">Light</option><option value="dark">Dark</option>
      </select>
    </label>
  );
}

function Pulse() {
  const { link: state, news } = useLive();
  const words = { on: "Live", connecting: "Connecting", off: "Not live: trying again", paused: "Paused" }[state];
  return (
    <span class={`pulse ${state}`} title={news ? `Newest figures: ${moment(news.at_us, true)} UTC` : undefined}>
      <span class="pulse-dot" aria-hidden="true" />{words}
    </span>
  );
}

export function Shell(props: { title: string; children: ComponentChildren }) {
  const { me, place } = useScene();
  const { news } = useLive();
  // The last hour with figures may not be over.
  const until = me.last_us === null ? null : Math.min(me.last_us, me.now_us);
  const here = place.path[0] ?? "";
  const section = here === "teams" || here === "owners" ? "" : here;
  return (
    <>
      <a class="skip" href="#main">Skip to the figures</a>
      <header class="top">
        <a class="brand" href={link([])}><img src="/assets/icon.svg" alt="" width="24" height="24" /> ettwatch</a>
        <nav aria-label="Views" class="views">
          {VIEWS.map(([path, name]) => (
            <a key={path} href={link(path ? [path] : [])} aria-current={section === path ? "page" : undefined}>
              {name}{path === "alerts" && news && news.firing > 0 ? <span class="badge"><span class="sr">, firing: </span>{news.firing}</span> : null}
            </a>
          ))}
        </nav>
        <span class="spread" />
        <Pulse />
        <Theme />
        {me.auth === "session" ? (
          <button type="button" class="quiet" onClick={() => void send("DELETE", address(["login"])).then(() => location.reload())}>Sign out</button>
        ) : null}
      </header>
      {me.demo || news?.stale ? (
        <aside aria-label="About the figures">
          {me.demo ? <p class="banner">Demonstration: a simulated fleet, no real jobs.</p> : null}
          {news?.stale ? <p class="banner warn" role="status">The figures are old: {news.stale}</p> : null}
        </aside>
      ) : null}
      <main id="main" tabIndex={-1} aria-label={props.title}>{props.children}</main>
      <footer class="foot">
        <span>ettwatch {me.version}</span>
        <span>All times are UTC.</span>
        {until ? <span>Figures until {moment(until)} ({ago(until, me.now_us)})</span> : null}
        <span>{me.user}, {me.role}</span>
        <a href="/api/v1/openapi.json">API</a>
      </footer>
    </>
  );
}
