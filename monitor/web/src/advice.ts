// What the module of advice answers (see the docs of ettwatch_monitor.advice).
export interface AdviceFigures {
  jobs: number;
  ett_pct: number | null;
  tts_p50_s: number | null;
  ttr_mean_s: number | null;
  total_gpu_h: number;
  held_gpu_h: number;
  effective_gpu_h: number;
  lost_gpu_h: number;
  components: Record<string, number>;
}

export interface Sample {
  jobs: number;
  of_jobs: number;
  events: number;
  share_pct: number | null;
}

export interface Overlap {
  remedy: string;
  title: string;
  how: string;
  gpu_h: number;
  text: string;
}

/** A gain: in the time that is looked at, of what was lost in it, and at this pace in a week. */
export interface Gain {
  gpu_h: number;
  held_gpu_h: number;
  lost_pct: number | null;
  gpu_h_week: number;
  held_gpu_h_week: number;
  /** Where a stage was asked for: how much of it comes back. */
  stage_gpu_h: number | null;
  jobs: number;
  times: number;
  confidence: string;
  overlaps: Overlap[];
  /** Counted in "all of it". */
  together: boolean;
}

/** A remedy over all teams; `entries` are numbers in the list of advice. */
export interface Group extends Gain {
  remedy: string;
  title: string;
  stage: string;
  owners: string[];
  entries: number[];
}

/** A remedy for one team. */
export interface Entry extends Gain {
  remedy: string;
  title: string;
  team: string | null;
  owner: string | null;
  contact: string | null;
  stage: string;
  error_pct: number | null;
  why: string;
  why_confidence: string;
  sum: Sum;
  jobs_named: { job: string; gpu_h: number; times: number }[];
  hosts: { host: string; attempts: number; jobs: string[] }[];
  arithmetic: string[];
  assumptions: string[];
  before: AdviceFigures;
  after: AdviceFigures;
  what_if: WhatIf;
}

/** How a gain comes about: less is lost, and what was not lost may go faster. */
export interface Sum {
  lost_before_gpu_h: number;
  lost_after_gpu_h: number;
  less_lost_gpu_h: number;
  faster_gpu_h: number;
  gpu_h: number;
  weeks: number;
  partly: number;
  scale: number;
}

export interface AdviceAnswer {
  window: { from_us: number; to_us: number };
  sample?: Sample;
  base?: AdviceFigures;
  all?: AdviceFigures | null;
  of_stage: { stage: string; lost_gpu_h: number; after_gpu_h: number } | null;
  replay_error_pct: number | null;
  groups: Group[];
  advice: Entry[];
}

export type Change = string | Record<string, unknown>;

export interface WhatIf {
  changes: Change[];
  team?: string | null;
  model?: string | null;
  cluster?: string | null;
}

export interface WhatIfAnswer {
  window: { from_us: number; to_us: number };
  sample?: Sample;
  changes: string[];
  before: AdviceFigures;
  after: AdviceFigures;
  saved_gpu_h_week: number;
  saved_held_gpu_h_week: number;
  by_team: Record<string, number>;
  replay_error_pct: number | null;
  notes: string[];
}
