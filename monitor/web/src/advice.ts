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

export interface Entry {
  remedy: string;
  title: string;
  team: string | null;
  owner: string | null;
  contact: string | null;
  stage: string;
  gpu_h_week: number;
  held_gpu_h_week: number;
  jobs: number;
  times: number;
  confidence: string;
  error_pct: number | null;
  why: string;
  arithmetic: string[];
  assumptions: string[];
  before: AdviceFigures;
  after: AdviceFigures;
  what_if: WhatIf;
}

export interface AdviceAnswer {
  window: { from_us: number; to_us: number };
  sample?: Sample;
  base?: AdviceFigures;
  all?: AdviceFigures | null;
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
