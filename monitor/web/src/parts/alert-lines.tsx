// Alerts in short: one line each.
import { moment } from "../format";
import { link } from "../router";
import type { AlertRow } from "../types";

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
          <Severity of={one.severity} /> <a href={link(["alerts"], { key: one.key })}>{one.title}</a>
          <span class="hint"> since {moment(one.starts_us)}{one.silenced ? ", silenced" : ""}</span>
        </li>
      ))}
      {props.alerts.length > props.most ? <li><a href={link(["alerts"])}>and {props.alerts.length - props.most} more</a></li> : null}
    </ul>
  );
}
