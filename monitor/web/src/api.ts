// Questions to the server: one answer per address, asked again when the figures changed.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { onChange } from "./live";

export class Refused extends Error {
  constructor(readonly status: number, text: string) {
    super(text);
  }
}

export type Params = Record<string, string | number | null | undefined>;

let csrf: string | null = null;
let signedOut: () => void = () => undefined;

export function useToken(token: string | null): void {
  csrf = token;
}

export function whenSignedOut(then: () => void): void {
  signedOut = then;
}

export function address(path: string[], params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined) query.set(name, String(value));
  }
  const text = query.toString();
  return `/api/v1/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

async function asked<T>(url: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...init });
  } catch (problem) {
    if ((problem as Error).name === "AbortError") throw problem;
    throw new Refused(0, "The server does not answer. Is it running, and is the network there?");
  }
  if (response.ok) return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
  let text = `The server answered ${response.status}.`;
  try {
    const body = (await response.json()) as { error?: string };
    if (typeof body.error === "string") text = body.error;
  } catch {
    // No JSON: the status has to do.
  }
  if (response.status === 401) signedOut();
  throw new Refused(response.status, text);
}

export function get<T>(url: string, signal?: AbortSignal): Promise<T> {
  return asked<T>(url, { headers: { accept: "application/json" }, signal });
}

export function send<T>(method: "POST" | "DELETE", url: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json", "content-type": "application/json" };
  if (csrf) headers["x-csrf-token"] = csrf;
  return asked<T>(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
}

export interface Answer<T> {
  data: T | null;
  error: Refused | null;
  loading: boolean;
  again: () => void;
}

/** What an address answers; null asks nothing. The old answer stays while a new one is fetched for the same address. */
export function useAnswer<T>(url: string | null, options: { live?: boolean } = {}): Answer<T> {
  const [state, setState] = useState<{ url: string | null; data: T | null; error: Refused | null; loading: boolean }>({
    url: null, data: null, error: null, loading: true,
  });
  const running = useRef<AbortController | null>(null);

  const ask = useCallback(() => {
    running.current?.abort();
    if (url === null) return;
    const control = new AbortController();
    running.current = control;
    setState((old) => ({ ...old, loading: true }));
    get<T>(url, control.signal).then(
      (data) => {
        if (!control.signal.aborted) setState({ url, data, error: null, loading: false });
      },
      (problem: unknown) => {
        if (control.signal.aborted) return;
        const error = problem instanceof Refused ? problem : new Refused(0, "The answer could not be read.");
        setState((old) => ({ url, data: old.url === url ? old.data : null, error, loading: false }));
      },
    );
  }, [url]);

  useEffect(() => {
    ask();
    return () => running.current?.abort();
  }, [ask]);
  useEffect(() => (options.live ? onChange(ask) : undefined), [ask, options.live]);

  return { data: state.data, error: state.error, loading: state.loading && url !== null, again: ask };
}
