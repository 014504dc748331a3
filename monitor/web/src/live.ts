// What the server tells by itself: one connection for the whole page, closed while nobody looks.
import { useEffect, useState } from "preact/hooks";
import type { Live } from "./types";

export type Link = "connecting" | "on" | "off" | "paused";

interface State {
  link: Link;
  news: Live | null;
}

let state: State = { link: "connecting", news: null };
let source: EventSource | null = null;
let again: number | undefined;
let wait = 1_000;
const watchers = new Set<() => void>();
const askers = new Set<() => void>();

function put(next: State): void {
  state = next;
  for (const watcher of watchers) watcher();
}

function open(): void {
  clearTimeout(again);
  source?.close();
  const mine = new EventSource("/api/v1/live");
  source = mine;
  mine.addEventListener("live", (event) => {
    let news: Live;
    try {
      news = JSON.parse((event as MessageEvent<string>).data) as Live;
    } catch {
      return;
    }
    wait = 1_000;
    const before = state.news;
    put({ link: "on", news });
    if (before && before.changed !== news.changed) for (const asker of askers) asker();
  });
  mine.onerror = () => {
    // A refused stream is not tried again by the browser, so this does it; ever slower, at most once a minute.
    mine.close();
    put({ ...state, link: "off" });
    clearTimeout(again);
    again = window.setTimeout(open, wait);
    wait = Math.min(wait * 2, 60_000);
  };
}

function close(link: Link): void {
  clearTimeout(again);
  source?.close();
  source = null;
  put({ ...state, link });
}

export function start(): void {
  open();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close("paused");
    else open();
  });
  // A page that is kept for the back button must not hold a connection.
  addEventListener("pagehide", () => close("paused"));
  addEventListener("pageshow", (event) => {
    if (event.persisted) open();
  });
}

export function useLive(): State {
  const [now, setNow] = useState(state);
  useEffect(() => {
    const look = () => setNow(state);
    watchers.add(look);
    look();
    return () => void watchers.delete(look);
  }, []);
  return now;
}

/** Calls when the figures of the fleet were made anew, at most every five seconds. */
export function onChange(then: () => void): () => void {
  let last = 0;
  let timer: number | undefined;
  const call = () => {
    const left = last + 5_000 - Date.now();
    clearTimeout(timer);
    if (left > 0) {
      timer = window.setTimeout(call, left);
      return;
    }
    last = Date.now();
    then();
  };
  askers.add(call);
  return () => {
    askers.delete(call);
    clearTimeout(timer);
  };
}
