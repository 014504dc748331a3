// Alerts in the words of the other pages: what they are of, whom they fit, and where to look next.
import { amount, percent, span } from "./format";
import { link } from "./router";
import { NAMES, componentOf, named } from "./terms";
import type { AlertRow } from "./types";

const METRICS: Record<string, string> = {
  tts: "time to start", ttr: "time to recover", compile: "compile time", nof: "failures", ett: "ETT %", outage: "failures",
  cache_hits: "hits of the compile cache", failures: "failures",
};
const FIGURES: Record<string, string> = {
  p50_before: "median before", p50_after: "median since", p10_before: "one in ten before was below", p10_after: "one in ten since is below",
  p90_before: "nine in ten before were below", p90_after: "nine in ten since are below", ratio: "times as much, among like jobs",
  ratio_from: "at least (95 %)", ratio_to: "at most (95 %)", points: "percentage points", samples_before: "samples before",
  samples_after: "samples since", jobs_after: "jobs since", p: "chance alone, at any time", p_two_sample: "chance alone, two samples",
  factor: "times as much as before",
};
const RAW = new RegExp(`(?<![\\w./-])(?:${Object.keys(NAMES).join("|")})(?:\\.[a-z0-9_]+)*(?![\\w/-])`, "g");

/** A text of an alert, with the names that the other pages have for stages and components. */
export function spoken(text: string): string {
  // "scheduling" and "shutdown" are words too: only what cannot be one is taken for a name.
  const said = text.replace(RAW, (name) => (/[._]/.test(name) ? named(name) : name));
  return said.charAt(0).toUpperCase() + said.slice(1);
}

export function metricNamed(metric: string): string {
  const bare = metric.replace(/^(share|part)\./, "");
  const name = METRICS[metric] ?? (componentOf(bare) in NAMES ? named(bare) : metric.replaceAll("_", " "));
  return bare === metric ? name : `share of ${name}`;
}

/** The stage or component that an alert is of; null where it names none. */
export function stageOf(alert: AlertRow): string | null {
  const metric = (alert.labels.metric ?? "").replace(/^(share|part)\./, "");
  if (alert.labels.component) return alert.labels.component;
  return componentOf(metric) in NAMES ? metric : metric === "compile" || metric === "cache_hits" ? "pt2_compilation" : null;
}

/** The figures of an alert with their units; those that say nothing by themselves are left out. */
export function figuresOf(alert: AlertRow): [string, string][] {
  const metric = alert.labels.metric ?? "";
  const value = (size: number) => (metric === "ett" || /^(share|part)\./.test(metric) ? percent(size * 100)
    : metric === "nof" ? `${amount(size)} per 1,000 GPU-hours` : ["tts", "ttr", "compile"].includes(metric) ? span(size) : amount(size));
  return Object.entries(alert.figures).filter(([name]) => !(name === "factor" && metric === "cache_hits") && !/^explained_/.test(name)).map(([name, size]) => {
    const said = FIGURES[name] ?? name.replace(/_s$/, "").replaceAll("_", " ");
    if (/^p\d\d_/.test(name)) return [said, value(size)];
    if (name === "p" || name === "p_two_sample") return [said, size < 0.0001 ? "less than 0.01 %" : percent(size * 100, 2)];
    return [said, name.endsWith("_s") ? span(size) : amount(size)];
  });
}

export interface Whose {
  teams: (string | null)[];
  models: (string | null)[];
  clusters: (string | null)[];
  /** Of the stages that cost most. */
  owners: string[];
}

/** Whether an alert is about some jobs: its team, model and cluster are theirs, or it is only of an owner of their costliest stages. */
export function fits(alert: AlertRow, whose: Whose): boolean {
  const asked: [string | undefined, (string | null)[]][] = [
    [alert.labels.team, whose.teams], [alert.labels.model, whose.models], [alert.labels.cluster, whose.clusters],
  ];
  const told = asked.filter(([value]) => value !== undefined);
  if (told.length) return told.every(([value, ours]) => ours.includes(value!));
  return alert.labels.owner !== undefined && whose.owners.includes(alert.labels.owner);
}

const SORTS: Record<string, string> = { tts: "-tts", hardware_setup: "-tts", trainer_init: "-tts", pt2_compilation: "-tts", ttr: "-recovery", nof: "-nof", failures: "-nof", outage: "-nof", compile: "-tts", cache_hits: "-tts" };

/** The jobs that an alert is of, since it fires. */
export function jobsHref(alert: AlertRow, nowUs: number): string {
  const { team, model, cluster, metric } = alert.labels;
  const until = Math.max(alert.ends_us ?? nowUs, alert.starts_us + 1);
  return link(["jobs"], { range: null, from: alert.starts_us, to: until, team, model, cluster, sort: SORTS[(metric ?? "").replace(/^(share|part)\./, "")] ?? "-lost" });
}

/** What can be done about what an alert is of. */
export function adviceHref(alert: AlertRow): string {
  const { team, owner } = alert.labels;
  return link(["advice"], { team, stage: stageOf(alert), owner: team || stageOf(alert) ? null : owner });
}
