// What the API answers. `make web` makes it from ettwatch_monitor.api.shapes (scripts/web_types.py).

export interface AlertRow {
  key: string;
  episode: number;
  status: string;
  severity: string;
  title: string;
  body: string;
  starts_us: number;
  ends_us: number | null;
  updated_us: number;
  silenced: boolean;
  labels: Record<string, string>;
  figures: Record<string, number>;
  sql: [string, string][];
}

export interface Alerts {
  alerts: AlertRow[];
  silences: SilenceRow[];
  can_silence: boolean;
}

export interface AttemptRow {
  attempt: number;
  start_us: number;
  end_us: number;
  open: boolean;
  outcome: string | null;
  cause: string | null;
  exit_code: number | null;
  signal: number | null;
  message: string | null;
  trigger: string | null;
  gpus: number;
  world_size: number | null;
  trained: boolean;
  first_batch_us: number | null;
  duration_s: number;
  tts_s: number | null;
  ttr_s: number | null;
  recovery_s: number;
  effective_s: number;
  unsaved_s: number;
  components: Record<string, number>;
  stages: Record<string, number>;
  hidden_s: Record<string, number>;
  flags: string[];
  hosts: string[];
}

export interface Compare {
  kind: string;
  label: string | null;
  window: Window | null;
  a: Side;
  b: Side;
  differences: Difference[];
}

export interface Difference {
  stage: string;
  a_pct: number;
  b_pct: number;
  delta_pct: number;
  a_gpu_h: number;
  b_gpu_h: number;
}

export interface Figures {
  ett_pct: number | null;
  ett_pct_jobs: number | null;
  total_gpu_h: number;
  effective_gpu_h: number;
  lost_gpu_h: number;
  waited_gpu_h: number;
  held_gpu_h: number;
  unsaved_gpu_h: number;
  job_h: number;
  jobs: number | null;
  attempts: number;
  starts: number;
  tts_p50_s: number | null;
  tts_p90_s: number | null;
  tts_p99_s: number | null;
  recoveries: number;
  ttr_p50_s: number | null;
  ttr_p90_s: number | null;
  ttr_p99_s: number | null;
  nof: number;
  nof_infra: number;
  nof_preempted: number;
  nof_per_1000_gpu_h: number | null;
  mtbf_h: number | null;
  causes: Record<string, number>;
}

export interface Fleet {
  window: Window;
  total: Figures;
  before: Figures | null;
  components: Record<string, number>;
  stages: StageLoss[];
  by: string;
  groups: Group[];
  statuses: Record<string, number>;
  as_of_us: number | null;
}

export interface Group {
  key: string | null;
  lost_gpu_h: number;
  before_lost_gpu_h: number | null;
  figures: Figures | null;
  components: Record<string, number>;
  contact: string | null;
}

export interface JobDetail {
  row: JobRow;
  labels: Record<string, string>;
  effective_s: number;
  ttr_s: number[];
  nof_infra: number;
  nof_preempted: number;
  unsaved_s: number;
  components: Record<string, number>;
  stages: Record<string, number>;
  stages_gpu_h: Record<string, number>;
  hidden_s: Record<string, number>;
  owners: Record<string, OwnerOf>;
  flags: string[];
  rules_version: string;
  as_of_us: number;
  attempts: AttemptRow[];
  stragglers: PhaseRow[];
}

export interface JobPage {
  total: number;
  page: number;
  size: number;
  sort: string;
  jobs: JobRow[];
}

export interface JobRow {
  job: string;
  status: string;
  team: string | null;
  model: string | null;
  cluster: string | null;
  attempts: number;
  gpus: number;
  t0_us: number;
  t1_us: number;
  e2e_s: number;
  ett_pct: number | null;
  tts_s: number | null;
  recovery_s: number;
  nof: number;
  total_gpu_h: number;
  effective_gpu_h: number;
  lost_gpu_h: number;
  worst_stage: string | null;
  worst_s: number;
}

export interface Live {
  number: number;
  at_us: number;
  statuses: Record<string, number>;
  firing: number;
  day: Figures | null;
  jobs: JobRow[];
  changed: number;
  stale: string | null;
}

export interface LoginBody {
  token: string;
}

export interface Mark {
  at_us: number;
  attempt: number;
  kind: string;
  label: string;
}

export interface Me {
  user: string;
  role: string;
  auth: string;
  csrf: string | null;
  can_silence: boolean;
  can_sql: boolean;
  can_advise: boolean;
  demo: boolean;
  version: string;
  now_us: number;
  first_us: number | null;
  last_us: number | null;
  teams: string[];
  models: string[];
  clusters: string[];
  owners: string[];
}

export interface OwnerOf {
  team: string;
  system: string | null;
  contact: string | null;
}

export interface OwnerView {
  owner: string;
  contacts: string[];
  window: Window;
  lost_gpu_h: number;
  before_lost_gpu_h: number | null;
  share_pct: number | null;
  stages: StageLoss[];
  teams: Record<string, number>;
  models: Record<string, number>;
  clusters: Record<string, number>;
  step_s: number;
  series: Point[];
}

export interface PhaseRow {
  attempt: number;
  phase: string;
  component: string;
  start_us: number;
  end_us: number;
  open: boolean;
  background: boolean;
  container: boolean;
  ranks: number;
  last_rank: number;
  last_host: string | null;
  behind_s: number;
  charged_s: number;
  hidden_s: number;
}

export interface Point {
  at_us: number;
  key: string | null;
  ett_pct: number | null;
  total_gpu_h: number;
  effective_gpu_h: number;
  lost_gpu_h: number;
  waited_gpu_h: number;
  jobs: number;
  nof: number;
  tts_p50_s: number | null;
  ttr_p50_s: number | null;
  components: Record<string, number>;
}

export interface Problem {
  error: string;
}

export interface Seg {
  attempt: number;
  stage: string;
  component: string;
  start_us: number;
  end_us: number;
  gpus: number;
}

export interface Series {
  window: Window;
  step_s: number;
  by: string | null;
  keys: (string | null)[];
  points: Point[];
}

export interface Shape {
}

export interface Side {
  key: string;
  jobs: number;
  ett_pct: number | null;
  total_gpu_h: number;
  lost_gpu_h: number;
  tts_s: number | null;
  ttr_s: number | null;
  nof: number;
  nof_per_1000_gpu_h: number | null;
  components: Record<string, number>;
  stages: Record<string, number>;
}

export interface SilenceBody {
  matchers: string;
  hours: number;
  comment: string;
}

export interface SilenceRow {
  number: number;
  matchers: string;
  starts_us: number;
  ends_us: number;
  comment: string;
}

export interface SqlAnswer {
  columns: SqlColumn[];
  rows: unknown[][];
  truncated: boolean;
  elapsed_s: number;
}

export interface SqlBody {
  query: string;
}

export interface SqlColumn {
  name: string;
  type: string;
}

export interface StageLoss {
  stage: string;
  component: string;
  gpu_h: number;
  job_h: number;
  owner: OwnerOf | null;
}

export interface StartRow {
  job: string;
  t0_us: number;
  gpus: number;
  tts_s: number;
}

export interface TeamView {
  team: string;
  window: Window;
  total: Figures;
  before: Figures | null;
  components: Record<string, number>;
  stages: StageLoss[];
  models: Group[];
  clusters: Group[];
  statuses: Record<string, number>;
  jobs: JobRow[];
}

export interface Timeline {
  job: string;
  t0_us: number;
  t1_us: number;
  from_us: number;
  to_us: number;
  segments: Seg[];
  phases: PhaseRow[];
  marks: Mark[];
  truncated: boolean;
}

export interface UsualStart {
  job: string;
  model: string | null;
  window: Window;
  starts: number;
  tts_p50_s: number | null;
  stages: Record<string, number>;
  warm: number;
  cold: number;
  caches: Record<string, string>;
  middle: StartRow | null;
  recent: StartRow[];
}

export interface Window {
  from_us: number;
  to_us: number;
}
