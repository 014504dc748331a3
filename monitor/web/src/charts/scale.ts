// From values to pixels and back, and where the ticks stand.
import { useEffect, useRef, useState } from "preact/hooks";
import { clock, day } from "../format";

/** About `wanted` round steps from 0 to at least `top`. */
export function ticks(top: number, wanted = 4): number[] {
  if (!(top > 0)) return [0, 1];
  const raw = top / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw)!;
  const made = [];
  for (let at = 0; ; at += 1) {
    made.push(at * step);
    if (at * step >= top * 0.999) return made;
  }
}

const SECOND = 1e6;
const STEPS = [
  0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
  172_800, 604_800, 1_209_600, 2_419_200, 7_257_600,
];

export interface Tick {
  at: number;
  text: string;
}

/** Ticks of UTC time, at most `most` of them. */
export function timeTicks(from: number, to: number, most: number): Tick[] {
  const step = (STEPS.find((one) => (to - from) / (one * SECOND) <= most) ?? STEPS.at(-1)!) * SECOND;
  // Weeks begin on Monday; the epoch was a Thursday.
  const shift = step >= 604_800 * SECOND ? 4 * 86_400 * SECOND : 0;
  const made: Tick[] = [];
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) {
    const midnight = at % (86_400 * SECOND) === 0;
    const text = step >= 86_400 * SECOND || midnight ? day(at)
      : step >= 60 * SECOND ? clock(at)
      : step >= SECOND ? clock(at, true)
      : `${clock(at, true)}.${String(Math.floor((at % SECOND) / 1_000)).padStart(3, "0")}`;
    made.push({ at, text });
  }
  return made;
}

/** The width of an element as it is now. */
export function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const look = () => setWidth(Math.floor(element.clientWidth));
    const watch = new ResizeObserver(look);
    watch.observe(element);
    look();
    return () => watch.disconnect();
  }, []);
  return [ref, width] as const;
}
