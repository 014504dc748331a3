// One bar cut by component: how an amount is made up.
import { COMPONENTS, EFFECTIVE, named } from "../terms";

export function Stack(props: { parts: Record<string, number>; of?: number; text: (value: number) => string; effective?: boolean; label: string }) {
  const keys = props.effective ? [EFFECTIVE, ...COMPONENTS] : [...COMPONENTS];
  const sum = keys.reduce((total, key) => total + Math.max(props.parts[key] ?? 0, 0), 0);
  const whole = Math.max(props.of ?? sum, sum);
  const told = keys.filter((key) => (props.parts[key] ?? 0) > 0).map((key) => `${named(key)} ${props.text(props.parts[key]!)}`).join(", ");
  return (
    <div class="stack" role="img" aria-label={`${props.label}: ${told || "nothing"}`} title={told}>
      {keys.map((key) => {
        const value = props.parts[key] ?? 0;
        return value > 0 && whole > 0 ? <span key={key} class={`bg-${key}`} style={{ width: `${(value / whole) * 100}%` }} /> : null;
      })}
    </div>
  );
}

/** A plain bar for one value beside others. */
export function Bar(props: { value: number; of: number; stage?: string }) {
  const share = props.of > 0 ? Math.max(0, Math.min(1, props.value / props.of)) : 0;
  return <span class="bar" aria-hidden="true"><span class={props.stage ? `bg-${props.stage}` : "bg-plain"} style={{ width: `${share * 100}%` }} /></span>;
}
