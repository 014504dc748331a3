// Alerts in short: one line each; and those that fit what a page is of.
import { fits, spoken, type Whose } from "../alerts";
import { address, useAnswer } from "../api";
import { moment } from "../format";
import { link } from "../router";
import type { AlertRow, Alerts } from "../types";
import { Section } from "./figure";

export function Severity(props: { of: string }) {
  const sign = { critical: "▲", warning: "●", info: "○" }[props.of] ?? "•";
  return <span class={`severity ${props.of}`}><span aria-hidden="true">{sign}</span> {props.of}</span>;
}

export function AlertLines(props: { alerts: AlertRow[]; most: number }) {
  if (!props.alerts.length) return <p class="hint">Nothing fires: nothing got notably worse.</p>;
  return (
    <ul class="lines">
      {props.alerts.slice(0, props.most).map((one) => (
        <li key={`${one.key} ${one.episode}`}>
          <Severity of={one.severity} /> <a href={link(["alerts"], { key: one.key })}>{spoken(one.title)}</a>
          <span class="hint"> since {moment(one.starts_us)}{one.silenced ? ", silenced" : ""}</span>
        </li>
      ))}
      {props.alerts.length > props.most ? <li><a href={link(["alerts"])}>and {props.alerts.length - props.most} more</a></li> : null}
    </ul>
  );
}

/** The alerts that fire and are about these jobs; nothing where there are none. */
export function Fitting(props: { whose: Whose; of: string }) {
  const answer = useAnswer<Alerts>(address(["alerts"], { status: "firing" }), { live: true });
  const found = answer.data?.alerts.filter((one) => one.status === "firing" && fits(one, props.whose)) ?? [];
  if (!found.length) return null;
  return <Section id="firing" title={`Alerts that fire for ${props.of}`}><AlertLines alerts={found} most={5} /></Section>;
}
