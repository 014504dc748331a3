// What stands where figures will be: while they load, when there are none, and when the server says no.
import type { ComponentChildren } from "preact";
import type { Answer } from "../api";

export function Loading(props: { what?: string }) {
  return (
    <div class="loading" role="status">
      <span class="spinner" aria-hidden="true" /> Loading{props.what ? ` ${props.what}` : ""} …
    </div>
  );
}

export function Empty(props: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children}
    </div>
  );
}

export function Failed(props: { text: string; again?: () => void }) {
  return (
    <div class="failed" role="alert">
      <p><strong>This could not be shown.</strong> {props.text}</p>
      {props.again ? <button type="button" onClick={props.again}>Try again</button> : null}
    </div>
  );
}

/** Draws `children` from the answer; an old answer stays, marked, while a new one fails. */
export function Shown<T>(props: { answer: Answer<T>; what?: string; children: (data: T) => ComponentChildren }) {
  const { data, error, again } = props.answer;
  if (data === null && error) return <Failed text={error.message} again={again} />;
  if (data === null) return <Loading what={props.what} />;
  return (
    <>
      {error ? <Failed text={`${error.message} What is shown is older.`} again={again} /> : null}
      <div class="answer" aria-busy={props.answer.loading ? "true" : undefined}>{props.children(data)}</div>
    </>
  );
}
