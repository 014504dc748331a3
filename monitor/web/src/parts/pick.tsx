// A choice among names that may be many: a field with suggestions. Empty means all.
import { useId } from "preact/hooks";

export function Pick(props: { label: string; value: string; names: string[]; onPick: (value: string | null) => void; hint?: string }) {
  const id = useId();
  return (
    <label class="pick">
      <span>{props.label}</span>
      <input list={id} value={props.value} placeholder={props.hint ?? "all"} autoComplete="off" spellcheck={false}
        onChange={(event) => props.onPick((event.target as HTMLInputElement).value.trim() || null)} />
      <datalist id={id}>{props.names.slice(0, 1_000).map((name) => <option key={name} value={name} />)}</datalist>
    </label>
  );
}
