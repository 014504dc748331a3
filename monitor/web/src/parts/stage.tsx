// A component or stage by its name, with its colour, what it means, and where it leads.
import { componentOf, meaning, named, shortly } from "../terms";
import { Term } from "./term";

export function Dot(props: { stage: string }) {
  return <span class={`dot bg-${componentOf(props.stage)}`} aria-hidden="true" />;
}

export function Stage(props: { of: string; short?: boolean }) {
  return (
    <span class="stage">
      <Dot stage={props.of} />
      <Term of={props.of} means={meaning(props.of)}>{props.short ? shortly(props.of) : named(props.of)}</Term>
    </span>
  );
}
