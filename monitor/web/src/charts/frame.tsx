// What surrounds every chart: its legend, the same figures as a table, and the chart as a file.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { meaning, named } from "../terms";
import { Dot } from "../parts/stage";
import { Term } from "../parts/term";
import { savePng, saveSvg } from "./save";

export function Legend(props: { keys: string[]; more?: ComponentChildren }) {
  return (
    <ul class="legend">
      {props.keys.map((key) => (
        <li key={key}><Dot stage={key} /><Term of={key} means={meaning(key)}>{named(key)}</Term></li>
      ))}
      {props.more}
    </ul>
  );
}

export function Frame(props: { name: string; legend?: ComponentChildren; table: () => ComponentChildren; tools?: ComponentChildren; children: ComponentChildren }) {
  const [tabled, setTabled] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const drawn = () => box.current?.querySelector<SVGSVGElement>("svg.chart") ?? null;
  const file = props.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "");
  return (
    <div class="frame" ref={box}>
      {props.legend}
      {tabled ? props.table() : props.children}
      <div class="frame-tools">
        {props.tools}
        <span class="spread" />
        <button type="button" class="quiet" aria-pressed={tabled} onClick={() => setTabled(!tabled)}>
          {tabled ? "As a chart" : "As a table"}
        </button>
        {tabled ? null : (
          <>
            <button type="button" class="quiet" aria-label={`Save ${props.name} as SVG`}
              onClick={() => { const svg = drawn(); if (svg) saveSvg(svg, file); }}>SVG</button>
            <button type="button" class="quiet" aria-label={`Save ${props.name} as PNG`}
              onClick={() => { const svg = drawn(); if (svg) void savePng(svg, file); }}>PNG</button>
          </>
        )}
      </div>
    </div>
  );
}
