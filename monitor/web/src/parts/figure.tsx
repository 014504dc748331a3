// One number with its name, its unit, what it was before, and where it is explained.
import type { ComponentChildren } from "preact";

export function Figure(props: {
  name: ComponentChildren; value: string; sub?: ComponentChildren; change?: Change | null; href?: string; explains?: string;
}) {
  return (
    <div class="figure">
      <div class="figure-name">{props.name}</div>
      <div class="figure-value">{props.value}</div>
      {props.change ? <Delta change={props.change} /> : null}
      {props.sub ? <div class="figure-sub">{props.sub}</div> : null}
      {props.href ? <a class="figure-link" href={props.href}>{props.explains ?? "What explains it"}</a> : null}
    </div>
  );
}

export interface Change {
  text: string;
  /** Whether it is for the better; null where it moved too little to say. */
  better: boolean | null;
}

export function Delta(props: { change: Change }) {
  const { text, better } = props.change;
  if (better === null) return <div class="delta">about the same as before</div>;
  return (
    <div class={`delta ${better ? "good" : "bad"}`}>
      <span>{text}</span> <span class="delta-word">({better ? "better" : "worse"} than before)</span>
    </div>
  );
}

/** How a figure moved between two windows; null where one of them is missing. */
export function change(
  now: number | null | undefined, before: number | null | undefined,
  options: { more: "good" | "bad"; text: (difference: number) => string; least: number },
): Change | null {
  if (now === null || now === undefined || before === null || before === undefined) return null;
  const difference = now - before;
  const small = Math.abs(difference) < options.least;
  return { text: options.text(difference), better: small ? null : (difference > 0) === (options.more === "good") };
}

export function Facts(props: { children: ComponentChildren }) {
  return <div class="figures">{props.children}</div>;
}

export function Section(props: { id: string; title: ComponentChildren; note?: ComponentChildren; side?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section aria-labelledby={`${props.id}-title`} id={props.id} class="panel">
      <div class="panel-head">
        <h2 id={`${props.id}-title`}>{props.title}</h2>
        {props.side}
      </div>
      {props.note ? <p class="note">{props.note}</p> : null}
      {props.children}
    </section>
  );
}
