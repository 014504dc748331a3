// A choice among names that may be many: a field with suggestions. Empty means all.
import { useEffect, useId, useRef } from "preact/hooks";

export function Pick(props: { label: string; value: string; names: string[]; onPick: (value: string | null) => void; hint?: string }) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // An answer that arrives, or the back button, changes what is asked, not what somebody is typing.
    if (input.current && document.activeElement !== input.current) input.current.value = props.value;
  }, [props.value]);
  return (
    <label class="pick">
      <span>{props.label}</span>
      <input ref={input} list={id} defaultValue={props.value} placeholder={props.hint ?? "all"} autoComplete="off" spellcheck={false}
        onChange={(event) => props.onPick((event.target as HTMLInputElement).value.trim() || null)} />
      <datalist id={id}>{props.names.slice(0, 1_000).map((name) => <option key={name} value={name} />)}</datalist>
    </label>
  );
}
