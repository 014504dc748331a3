// Filters of a list; on a narrow screen folded, so that the list comes first.
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

export function Filters(props: { set: number; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <div class={open ? "folding open" : "folding"}>
      <button type="button" class="fold" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        Filters{props.set ? `, ${props.set} set` : ""} <span aria-hidden="true">{open ? "▴" : "▾"}</span>
      </button>
      <div class="filters" role="search" id={id}>{props.children}</div>
    </div>
  );
}
