// Asks for the access token, once; the server keeps it in a cookie that scripts cannot read.
import { useState } from "preact/hooks";
import { Refused, address, send } from "../api";

export function Login() {
  const [problem, setProblem] = useState<string | null>(null);
  const enter = (event: SubmitEvent) => {
    event.preventDefault();
    const token = String(new FormData(event.target as HTMLFormElement).get("token") ?? "").trim();
    if (!token) { setProblem("Type the token first."); return; }
    send("POST", address(["login"]), { token }).then(
      () => location.reload(),
      (error: unknown) => setProblem(error instanceof Refused && error.status === 401 ? "This token is not known here." : String((error as Error).message)),
    );
  };
  return (
    <main class="alone" id="main">
      <form class="panel login" onSubmit={enter}>
        <h1>ettwatch</h1>
        <p>Enter your access token. Whoever runs this monitor can give you one.</p>
        <label for="token">Token</label>
        <input id="token" name="token" type="password" autoComplete="current-password" aria-describedby={problem ? "token-problem" : undefined} />
        {problem ? <p id="token-problem" class="problem" role="alert">{problem}</p> : null}
        <button type="submit" class="primary">Sign in</button>
      </form>
    </main>
  );
}
