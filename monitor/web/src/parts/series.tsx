// ETT % and lost GPU-hours over time.
import { type Answer, type Params, address, useAnswer } from "../api";
import { OverTime } from "../charts/over-time";
import { amount, percent } from "../format";
import { set } from "../router";
import { COMPONENTS } from "../terms";
import type { Series } from "../types";
import { Shown } from "./answer";
import { Section } from "./figure";

export function zoomTo(from: number, to: number): void {
  set({ from, to, range: null });
}

/** Asked beside the other figures of a view, so that none waits for the other. */
export function useSeries(asked: Params): Answer<Series> {
  return useAnswer<Series>(address(["fleet", "series"], asked), { live: true });
}

export function SeriesCharts(props: { series: Answer<Series> }) {
  const { series } = props;
  return (
    <div class="columns even">
      <Section id="over-time" title="ETT % over time">
        <Shown answer={series}>{(data) => (
          <OverTime name="ETT % over time" from_us={data.window.from_us} to_us={data.window.to_us} step_s={data.step_s} top={100} unit="ETT %"
            spots={data.points.map((one) => ({ at_us: one.at_us, value: one.ett_pct }))} text={(value) => percent(value, value % 1 ? 1 : 0)} onRange={zoomTo} />
        )}</Shown>
      </Section>
      <Section id="lost-over-time" title="Lost GPU-hours by component">
        <Shown answer={series}>{(data) => (
          <OverTime name="Lost GPU-hours by component" from_us={data.window.from_us} to_us={data.window.to_us} step_s={data.step_s} unit="GPU-hours" keys={[...COMPONENTS]}
            spots={data.points.map((one) => ({ at_us: one.at_us, parts: one.components }))} text={amount} onRange={zoomTo} />
        )}</Shown>
      </Section>
    </div>
  );
}
