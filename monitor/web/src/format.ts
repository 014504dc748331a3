// Numbers and times as people read them. All times are UTC.
const DASH = "–";
const MINUS = "−";

function grouped(value: number, digits: number): string {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", MINUS);
}

/** GPU-hours or other amounts: three significant figures below 100, whole from there. */
export function amount(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return DASH;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.005) return value < 0 ? `> ${MINUS}0.01` : "< 0.01";
  return grouped(value, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** A unit of GPU time, and how amounts of GPU-hours read in it. */
export interface GpuUnit {
  name: string;
  of: (hours: number) => string;
}

/** The unit for amounts of which `most` GPU-hours is the largest: hours, and where these say nothing, minutes or seconds. */
export function gpuUnit(most: number): GpuUnit {
  const size = Math.abs(most);
  const [name, each] = size === 0 || size >= 1 ? ["GPU-hours", 1] as const : size * 60 >= 1 ? ["GPU-minutes", 60] as const : ["GPU-seconds", 3_600] as const;
  return { name, of: (hours) => amount(hours * each) };
}

/** GPU-hours with their unit: "1,234 GPU-hours", "12.5 GPU-minutes". */
export function gpuTime(hours: number): string {
  const unit = gpuUnit(hours);
  return `${unit.of(hours)} ${unit.name}`;
}

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? DASH : grouped(value, 0);
}

export function percent(value: number | null | undefined, digits = 1): string {
  return value === null || value === undefined || !Number.isFinite(value) ? DASH : `${grouped(value, digits)} %`;
}

/** "most of it, 61 %"; "the largest part, 24 %" where it is less than half; "all of it". */
export function largest(part: number, whole: number): string {
  if (part >= whole * 0.9995) return "all of it";
  return `${part * 2 < whole ? "the largest part" : "most of it"}, ${percent(whole > 0 ? (part / whole) * 100 : null, 0)}`;
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** "1 job", "12 jobs". */
export function counted(value: number, one: string): string {
  return `${count(value)} ${one}${value === 1 ? "" : "s"}`;
}

export function signed(value: number, text: (size: number) => string): string {
  return `${value > 0 ? "+" : value < 0 ? MINUS : "±"}${text(Math.abs(value))}`;
}

/** A span of time in its two largest units: 3 d 4 h, 2 h 5 min, 8 min 3 s, 4.2 s, 35 ms. */
export function span(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return DASH;
  if (seconds < 0) return MINUS + span(-seconds);
  if (seconds === 0) return "0 s";
  if (seconds < 1) return seconds < 0.001 ? "< 1 ms" : `${Math.round(seconds * 1_000)} ms`;
  if (seconds < 59.95) return `${Number(seconds.toFixed(seconds < 10 ? 1 : 0))} s`;
  const units: [string, number][] = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];
  for (let at = 0; at < units.length - 1; at += 1) {
    const [name, size] = units[at]!;
    const [lesser, part] = units[at + 1]!;
    const parts = Math.round(seconds / part);
    if (parts * part < size) continue;
    const whole = Math.floor((parts * part) / size);
    const rest = Math.round((parts * part - whole * size) / part);
    return rest ? `${whole} ${name} ${rest} ${lesser}` : `${whole} ${name}`;
  }
  return `${Math.round(seconds)} s`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (value: number) => String(value).padStart(2, "0");

export function day(us: number): string {
  const at = new Date(us / 1_000);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
}

export function clock(us: number, seconds = false): string {
  const at = new Date(us / 1_000);
  return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}${seconds ? `:${two(at.getUTCSeconds())}` : ""}`;
}

export function moment(us: number | null | undefined, seconds = false): string {
  if (us === null || us === undefined) return DASH;
  const at = new Date(us / 1_000);
  const year = at.getUTCFullYear() === new Date().getUTCFullYear() ? "" : ` ${at.getUTCFullYear()}`;
  return `${day(us)}${year}, ${clock(us, seconds)}`;
}

export function iso(us: number): string {
  return new Date(us / 1_000).toISOString();
}

/** How long ago: "just now", "5 min ago". */
export function ago(us: number, nowUs: number): string {
  const seconds = Math.max(0, (nowUs - us) / 1e6);
  return seconds < 45 ? "just now" : `${span(seconds).split(" ").slice(0, 2).join(" ")} ago`;
}
