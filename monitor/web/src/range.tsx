// The time that is looked at: a preset or a stretch, in the address.
import type { Place } from "./router";
import { changed, set } from "./router";
import { clock, day } from "./format";
import type { Me } from "./types";

const HOUR = 3_600e6;
const DAY = 24 * HOUR;

export interface Range {
  from: number;
  to: number;
  name: string;
  /** For sentences: "in the last 24 hours". */
  phrase: string;
}

const PRESETS: [string, string, string][] = [
  ["24h", "24 hours", "In the last 24 hours"],
  ["yesterday", "Yesterday", "Yesterday"],
  ["7d", "7 days", "In the last 7 days"],
  ["30d", "30 days", "In the last 30 days"],
];

/** What the address asks for. Figures that end long ago are looked at from their end, not from now. */
export function rangeOf(place: Place, me: Me): Range {
  const from = Number(place.query.get("from"));
  const to = Number(place.query.get("to"));
  const old = me.last_us !== null && me.now_us - me.last_us > 2 * DAY;
  const end = old ? me.last_us! : Math.ceil(me.now_us / HOUR) * HOUR;
  if (Number.isSafeInteger(from) && Number.isSafeInteger(to) && from > 0 && to > from) {
    const hours = (to - from) % DAY !== 0 || from % DAY !== 0;
    const until = hours ? `${day(to)} ${clock(to)}` : day(to - DAY);
    const since = hours ? `${day(from)} ${clock(from)}` : day(from);
    const said = since === until ? since : `${since} to ${until}`;
    return { from, to, name: "chosen", phrase: `From ${said} (UTC)` };
  }
  const name = place.query.get("range") ?? "24h";
  if (name === "yesterday") {
    const midnight = Math.floor((end - 1) / DAY) * DAY;
    return { from: midnight - DAY, to: midnight, name, phrase: `Yesterday (${day(midnight - DAY)}, UTC)` };
  }
  const length = name === "30d" ? 30 * DAY : name === "7d" ? 7 * DAY : DAY;
  const known = PRESETS.find(([one]) => one === name) ?? PRESETS[0]!;
  return { from: end - length, to: end, name: known[0], phrase: old ? `${known[2]} of which there is data` : known[2] };
}

/** For what is usual: the time looked at, or the seven days to its end where it is shorter. */
export function usually(range: Range): { from: number; to: number } {
  return { from: Math.min(range.from, range.to - 7 * DAY), to: range.to };
}

function valueOf(us: number): string {
  return new Date(us / 1_000).toISOString().slice(0, 10);
}

export function RangeBar(props: { range: Range }) {
  const { range } = props;
  const pick = (which: "from" | "to") => (event: Event) => {
    const at = Date.parse(`${(event.target as HTMLInputElement).value}T00:00:00Z`) * 1_000;
    if (!Number.isFinite(at) || at <= 0) return;
    const from = which === "from" ? at : Math.min(range.from, at);
    const to = which === "to" ? at + DAY : Math.max(range.to, at + DAY);
    set({ from, to, range: null });
  };
  return (
    <div class="range">
      <nav class="group" aria-label="Time looked at">
        {PRESETS.map(([name, text]) => (
          <a key={name} class="choice" href={changed({ range: name === "24h" ? null : name, from: null, to: null })}
            aria-current={range.name === name ? "true" : undefined}>{text}</a>
        ))}
      </nav>
      <span class="dates">
        <label><span class="sr">From</span><input type="date" value={valueOf(range.from)} onChange={pick("from")} /></label>
        <span aria-hidden="true">–</span>
        <label><span class="sr">Until and with</span><input type="date" value={valueOf(range.to - 1)} onChange={pick("to")} /></label>
        <span class="hint">UTC</span>
      </span>
    </div>
  );
}
