// Where the page is: the path says the view, the query its state. Every link is a plain <a>, so that all of them can be
// shared, opened in a tab, and gone back from.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  path: string[];
  query: URLSearchParams;
}

type Changes = Record<string, string | number | null | undefined>;

const listeners = new Set<() => void>();

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function here(): Place {
  const path = location.pathname.split("/").filter((part) => part !== "").map(decoded);
  return { path, query: new URLSearchParams(location.search) };
}

export function go(url: string, options: { replace?: boolean } = {}): void {
  const target = new URL(url, location.href);
  const turned = target.pathname !== location.pathname;
  history[options.replace ? "replaceState" : "pushState"](null, "", target.pathname + target.search);
  for (const listener of listeners) listener();
  if (turned) {
    scrollTo(0, 0);
    // A screen reader goes on from the new heading, the keyboard from the top of the view.
    requestAnimationFrame(() => document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true }));
  }
}

/** The address of this view with some of its state changed; null or "" leaves a name out. */
export function changed(changes: Changes): string {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

export function set(changes: Changes, options: { replace?: boolean } = {}): void {
  go(changed(changes), options);
}

/** An address from the parts of its path, each encoded, with the state that views share (the time looked at) kept. */
export function link(parts: string[], more: Changes = {}): string {
  const query = new URLSearchParams();
  const now = new URLSearchParams(location.search);
  for (const name of ["range", "from", "to"]) {
    const value = now.get(name);
    if (value) query.set(name, value);
  }
  for (const [name, value] of Object.entries(more)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString();
  return `/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const look = () => setPlace(here());
    listeners.add(look);
    addEventListener("popstate", look);
    return () => {
      listeners.delete(look);
      removeEventListener("popstate", look);
    };
  }, []);
  return place;
}

/** Plain clicks on links into the page turn it without a request. */
export function watchLinks(): void {
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const anchor = (event.target as Element | null)?.closest?.("a");
    if (!anchor || anchor.target || anchor.hasAttribute("download") || anchor.origin !== location.origin) return;
    if (/^\/(api|assets|metrics)(\/|$)/.test(anchor.pathname) || anchor.getAttribute("href")?.startsWith("#")) return;
    event.preventDefault();
    go(anchor.href);
  });
}
