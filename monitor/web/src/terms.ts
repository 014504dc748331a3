// The words of the page: what each term, component and stage means, in plain English.
export const COMPONENTS = [
  "scheduling", "hardware_setup", "trainer_init", "pt2_compilation", "wasted_training", "shutdown",
] as const;

export const EFFECTIVE = "effective_training";

export const TERMS: Record<string, string> = {
  "ETT %":
    "Effective training time: the share of all GPU time in which training took in new data. 100 % is the ideal; the rest was lost to waiting, starting, redoing and closing down.",
  "GPU-hours": "One GPU for one hour. A job on 64 GPUs that waits for half an hour costs 32 GPU-hours.",
  "lost GPU-hours":
    "All GPU time that did not take in new data: waiting for hardware, starting up, compiling, stalls and redone work, and closing down.",
  "time to start":
    "From hardware being allocated to the first batch of the first attempt. Half of the starts were faster than the median; nine in ten were faster than p90.",
  "time to recover":
    "After a failure: from the last new data of the attempt that failed to the first batch of the next one. Noticing the fault and waiting for hardware are part of it.",
  failures: "Attempts that failed or were preempted. Preempted: the scheduler took the hardware away.",
  "failures per 1,000 GPU-hours": "So that small and large fleets can be compared. Includes preemptions.",
  attempt: "One execution of a job on allocated hardware. After a failure the next attempt carries on from the last checkpoint.",
  "wall time": "From when the job could have run to when it was over (or now).",
  "unsaved work": "Training that failures threw away, because no checkpoint held it. Until it is redone it shows up nowhere else.",
  "hidden work": "Ran beside something that took longer, so nothing waited for it. It costs nothing, and making it faster gains nothing.",
  straggler: "The rank (process) that finished last, and by how much it kept all the others waiting.",
  checkpoint: "A saved state of training that a later attempt can carry on from.",
  owner: "The team that runs the system behind a component or stage, by the ownership file. Not the team whose job it is.",
  "waited for": "GPU time of scheduling: it was waited for, not held. Nobody else was kept from those GPUs.",
  "held": "GPU time for which the GPUs were allocated to the job, used or not.",
  rank: "One process of a distributed job, mostly one for each GPU.",
  "mean time between failures": "Hours of running jobs divided by the number of failures.",
};

export const NAMES: Record<string, string> = {
  scheduling: "Scheduling",
  hardware_setup: "Hardware setup",
  trainer_init: "Trainer start-up",
  pt2_compilation: "Compilation",
  wasted_training: "Wasted training",
  shutdown: "Shutdown",
  [EFFECTIVE]: "Effective training",
};

export const MEANS: Record<string, string> = {
  scheduling: "Waiting for hardware: in the queue at first, and after each failure until the next allocation.",
  hardware_setup: "Hardware is there; the launcher and the trainer program are being brought up (images pulled, binaries started).",
  trainer_init: "The trainer is up but not training yet: devices, process groups, data readers, loading a checkpoint, the first batch.",
  pt2_compilation: "torch.compile at work: at the start, and again when shapes change while training.",
  wasted_training: "Inside the training loop, but without new data: blocking saves, waiting for data, redone work, hangs.",
  shutdown: "From the end of training to the release of the hardware: last checkpoint, publishing the model, teardown.",
  [EFFECTIVE]: "Training that took in new data: what the GPUs are for.",
  "scheduling.queue_wait": "In the scheduler's queue.",
  "scheduling.preempted": "Preempted, and waiting for hardware again.",
  "hardware_setup.image_pull": "Container images being pulled to the hosts.",
  "hardware_setup.binary_start": "The launcher and trainer binaries starting.",
  "trainer_init.device_init": "GPUs being set up by the trainer.",
  "trainer_init.process_group_init": "All ranks finding each other.",
  "trainer_init.preproc_creation": "Data preprocessing being set up.",
  "trainer_init.train_module_creation": "The model being built.",
  "trainer_init.init_plugins": "Plugins of the trainer starting.",
  "trainer_init.pre_train": "What the trainer does just before the loop.",
  "trainer_init.get_first_batch_data": "Waiting for the first batch of data.",
  "trainer_init.checkpoint_load": "Loading a checkpoint to carry on from.",
  "pt2_compilation.dynamo": "torch.compile: capturing the graph.",
  "pt2_compilation.aot_autograd": "torch.compile: making the backward graph.",
  "pt2_compilation.inductor": "torch.compile: generating kernels.",
  "pt2_compilation.autotune": "torch.compile: trying kernels out to find the fastest.",
  "pt2_compilation.cache_load": "torch.compile: loading from its cache.",
  "pt2_compilation.recompile": "Compiling again while training, mostly because shapes or flags changed.",
  "wasted_training.checkpoint_save": "Training stood still while a checkpoint was saved (the blocking part only).",
  "wasted_training.rework": "Data that had been trained on before a failure, trained on once more because no checkpoint held it.",
  "wasted_training.data_stall": "The trainer waited for data.",
  "wasted_training.hang": "No progress for longer than the hang limit.",
  "wasted_training.no_progress": "The last stretch before a failure or a rollback: nothing of it counted.",
  "wasted_training.evaluation": "Evaluation between training steps.",
  "shutdown.final_checkpoint": "The last checkpoint being saved.",
  "shutdown.model_publish": "The model being published while the GPUs are still held.",
  "shutdown.teardown": "Processes ending and hardware being released.",
};

/** What mostly helps, by stage, then by component. The advice view has the gains in the fleet's own numbers. */
const HELPS: Record<string, string> = {
  scheduling: "Look at quotas, priorities and fragmentation. After failures: keep spare hosts so that retries need not queue.",
  hardware_setup: "Keep images on the hosts or pull them lazily and from nearby; start the binary while data and model are prepared.",
  "hardware_setup.image_pull": "Keep images on the hosts, make them smaller, or pull them lazily from a cache nearby.",
  trainer_init: "Run the slow steps side by side instead of one after the other; do what does not need GPUs before they are allocated.",
  "trainer_init.process_group_init": "Create groups lazily, and look for one slow or distant host among the stragglers.",
  "trainer_init.get_first_batch_data": "Start the data readers first, beside the rest of the start-up, and keep their caches warm.",
  "trainer_init.checkpoint_load": "Load in parallel and from storage nearby, or from memory of hosts that survived.",
  pt2_compilation: "Share the compile cache between attempts and jobs with equal keys, so that restarts need not compile again.",
  "pt2_compilation.recompile": "Mark dynamic shapes as such, or pad to a few sizes, so that the same kernels fit.",
  "pt2_compilation.autotune": "Keep the results of autotuning in a shared cache.",
  wasted_training: "See which stage it is: saves, data, redone work and hangs need different remedies.",
  "wasted_training.checkpoint_save": "Save asynchronously: copy to host memory, then train on while it is written.",
  "wasted_training.rework": "Save more often (cheap if saves are asynchronous), so that a failure throws less away.",
  "wasted_training.data_stall": "Read ahead more, add data readers, or move preprocessing off the training hosts.",
  "wasted_training.hang": "Notice hangs sooner: a shorter watchdog timeout, and end the attempt automatically.",
  "wasted_training.no_progress": "Notice failures sooner, and restart without waiting for a person.",
  "wasted_training.evaluation": "Evaluate on a copy elsewhere, or less often.",
  shutdown: "Let go of the GPUs first; do what does not need them on other machines.",
  "shutdown.model_publish": "Publish from a machine without GPUs after the training hardware is released.",
  "shutdown.final_checkpoint": "Save asynchronously, and skip it if the last regular checkpoint is fresh.",
};

export function componentOf(stage: string): string {
  return stage.split(".", 1)[0]!;
}

/** The name of a component or stage as people read it: "Compilation: recompile". */
export function named(stage: string): string {
  const [component, ...rest] = stage.split(".");
  const first = NAMES[component!] ?? component!;
  return rest.length ? `${first}: ${rest.join(" ").replaceAll("_", " ")}` : first;
}

export function shortly(stage: string): string {
  const at = stage.indexOf(".");
  return at < 0 ? `${NAMES[stage] ?? stage}, other` : stage.slice(at + 1).replaceAll(".", " ").replaceAll("_", " ");
}

function nearest(table: Record<string, string>, stage: string): string | undefined {
  for (let name = stage; ; name = name.slice(0, name.lastIndexOf("."))) {
    if (table[name]) return table[name];
    if (!name.includes(".")) return undefined;
  }
}

export function meaning(stage: string): string {
  return nearest(MEANS, stage) ?? `A stage named ${stage}.`;
}

export function helps(stage: string): string | undefined {
  return nearest(HELPS, stage);
}

export const STATUS: Record<string, string> = {
  pending: "No attempt yet: it waits for hardware.",
  starting: "Has hardware, has not trained yet.",
  training: "Training.",
  recovering: "After a failure: waits for a retry, or the next attempt is starting.",
  silent: "Open, but nothing was heard from it for ten minutes.",
  succeeded: "Ended well.",
  failed: "Ended by a failure.",
  cancelled: "Ended by somebody's wish.",
  lost: "Nothing was heard for six hours; taken as over.",
};
export const LIVE = ["pending", "starting", "training", "recovering", "silent"];
