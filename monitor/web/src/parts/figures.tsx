// The figures that fleet and team share: six numbers, each with what explains it.
import { type GpuUnit, amount, count, gpuTime, gpuUnit, percent, signed, span } from "../format";
import { link } from "../router";
import type { Figures as Told } from "../types";
import { Facts, Figure, change } from "./figure";
import { Term } from "./term";

export function Figures(props: { now: Told; before: Told | null; filter?: Record<string, string>; live?: number | null }) {
  const { now, before } = props;
  const filter = props.filter ?? {};
  const [lost, total, unsaved] = [Math.max(now.lost_gpu_h, before?.lost_gpu_h ?? 0), now.total_gpu_h, now.unsaved_gpu_h].map(gpuUnit) as [GpuUnit, GpuUnit, GpuUnit];
  const jobs = (sort: string) => link(["jobs"], { ...filter, sort });
  return (
    <Facts>
      <Figure name={<Term of="ETT %" />} value={percent(now.ett_pct)} href="#lost" explains="Where the rest went"
        change={change(now.ett_pct, before?.ett_pct, { more: "good", least: 0.1, text: (by) => `${signed(by, (size) => size.toFixed(1))} points` })}
        sub={now.ett_pct_jobs === null ? null : `${percent(now.ett_pct_jobs)} with each job counted alike`} />
      <Figure name={<Term of="lost GPU-hours">lost {lost.name}</Term>} value={lost.of(now.lost_gpu_h)} href={jobs("-lost")} explains="Jobs that lost most"
        change={change(now.lost_gpu_h, before?.lost_gpu_h, { more: "bad", least: Math.max(now.lost_gpu_h * 0.01, 1e-5), text: (by) => signed(by, lost.of) })}
        sub={<>of {total.of(now.total_gpu_h)} <Term of="GPU-hours">{total.name}</Term>; {gpuTime(now.waited_gpu_h)} of them <Term of="waited for" /></>} />
      <Figure name={<Term of="time to start">time to start, median</Term>} value={span(now.tts_p50_s)} href={jobs("-tts")} explains="Slowest starts"
        change={change(now.tts_p50_s, before?.tts_p50_s, { more: "bad", least: Math.max((now.tts_p50_s ?? 0) * 0.02, 1), text: (by) => signed(by, span) })}
        sub={`p90 ${span(now.tts_p90_s)}, ${count(now.starts)} starts`} />
      <Figure name={<Term of="time to recover">time to recover, median</Term>} value={span(now.ttr_p50_s)} href={jobs("-recovery")} explains="Longest recoveries"
        change={change(now.ttr_p50_s, before?.ttr_p50_s, { more: "bad", least: Math.max((now.ttr_p50_s ?? 0) * 0.02, 1), text: (by) => signed(by, span) })}
        sub={`p90 ${span(now.ttr_p90_s)}, ${count(now.recoveries)} recoveries`} />
      <Figure name={<Term of="failures" />} value={count(now.nof)} href={jobs("-nof")} explains="Jobs that failed most"
        change={change(now.nof_per_1000_gpu_h, before?.nof_per_1000_gpu_h, { more: "bad", least: 0.1, text: (by) => `${signed(by, amount)} per 1,000 GPU-hours` })}
        sub={<>{count(now.nof_preempted)} preempted; <Term of="failures per 1,000 GPU-hours">{amount(now.nof_per_1000_gpu_h)} per 1,000 GPU-hours</Term></>} />
      <Figure name={<Term of="unsaved work" />} value={unsaved.of(now.unsaved_gpu_h)} href={jobs("-nof")} explains="Jobs that failed most" sub={`${unsaved.name} thrown away by failures`} />
    </Facts>
  );
}
