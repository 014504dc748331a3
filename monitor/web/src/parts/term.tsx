// A word with a definition that shows on hover, focus and touch. Escape hides it. Where a table can be sorted by it, a click sorts.
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { TERMS } from "../terms";

export function Term(props: { of: string; children?: ComponentChildren; means?: string; sort?: () => void }) {
  const means = props.means ?? TERMS[props.of];
  const id = useId();
  const anchor = useRef<HTMLButtonElement>(null);
  const tip = useRef<HTMLSpanElement>(null);
  const [shown, show] = useState(false);

  // Before it is drawn: where it is seen, it is in place, and hears Escape.
  useLayoutEffect(() => {
    const box = tip.current;
    const from = anchor.current;
    if (!shown || !box || !from) return;
    // Fixed, so that no scrolling box cuts it off; kept inside the window.
    const at = from.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - box.offsetWidth - 8));
    const below = at.bottom + 6;
    const fits = below + box.offsetHeight < innerHeight - 8;
    box.style.left = `${left}px`;
    box.style.top = `${fits ? below : Math.max(8, at.top - box.offsetHeight - 6)}px`;
    const hide = (event: KeyboardEvent) => event.key === "Escape" && show(false);
    const away = () => show(false);
    addEventListener("keydown", hide);
    addEventListener("scroll", away, { capture: true, passive: true });
    return () => {
      removeEventListener("keydown", hide);
      removeEventListener("scroll", away, { capture: true });
    };
  }, [shown]);

  if (!means) return <>{props.children ?? props.of}</>;
  return (
    <span class="term-box" onMouseLeave={() => show(false)}>
      <button
        ref={anchor} type="button" class={props.sort ? "term sort" : "term"} aria-describedby={id}
        onMouseEnter={() => show(true)} onFocus={() => show(true)} onBlur={() => show(false)} onClick={props.sort ?? (() => show(true))}
      >
        {props.children ?? props.of}
      </button>
      <span ref={tip} id={id} role="tooltip" class={shown ? "tip shown" : "tip"}>{means}</span>
    </span>
  );
}
