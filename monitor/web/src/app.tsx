// The frame of the page: who looks, where they are, and the view of it.
import { Component, type ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { address, useAnswer, useToken, whenSignedOut } from "./api";
import { Scenes } from "./context";
import { start } from "./live";
import { Failed, Loading } from "./parts/answer";
import { Login } from "./parts/login";
import { Shell } from "./parts/shell";
import { rangeOf } from "./range";
import { type Place, usePlace } from "./router";
import type { Me } from "./types";
import { AdviceView } from "./views/advice";
import { AlertsView } from "./views/alerts";
import { CompareView } from "./views/compare";
import { FleetView } from "./views/fleet";
import { JobView } from "./views/job";
import { JobsView } from "./views/jobs";
import { OwnerView } from "./views/owner";
import { SqlView } from "./views/sql";
import { TeamView } from "./views/team";

function view(place: Place): [string, ComponentChildren] {
  const [first, ...rest] = place.path;
  const name = rest.join("/");
  if (first === undefined) return ["Fleet", <FleetView />];
  if (first === "jobs" && rest.length) return [`Job ${name}`, <JobView key={name} job={name} />];
  if (first === "teams" && rest.length) return [`Team ${name}`, <TeamView key={name} team={name} />];
  if (first === "owners" && rest.length) return [`Owner ${name}`, <OwnerView key={name} owner={name} />];
  if (first === "jobs") return ["Jobs", <JobsView />];
  if (first === "compare") return ["Compare", <CompareView />];
  if (first === "alerts") return ["Alerts", <AlertsView />];
  if (first === "advice") return ["Advice", <AdviceView />];
  if (first === "sql") return ["SQL", <SqlView />];
  return ["Not found", <div class="panel"><h1>There is no such page</h1><p>Go to the <a href="/">fleet</a>, or find a <a href="/jobs">job</a>.</p></div>];
}

/** A fault in one view must not take the page with it. */
class Guard extends Component<{ children: ComponentChildren }, { broken: boolean }> {
  override state: { broken: boolean } = { broken: false };
  static override getDerivedStateFromError() {
    return { broken: true };
  }
  override componentDidCatch(problem: unknown) {
    console.error(problem);
  }
  override render() {
    return this.state.broken
      ? <Failed text="The page has a fault here. Load it again; if it stays, report what the console says." again={() => location.reload()} />
      : this.props.children;
  }
}

export function App() {
  const place = usePlace();
  const [out, setOut] = useState(false);
  const who = useAnswer<Me>(address(["me"]), { live: true });
  const me = who.data;
  useEffect(() => whenSignedOut(() => setOut(true)), []);
  useEffect(() => {
    if (me && !out) start();
  }, [me === null, out]);
  if (me) useToken(me.csrf);
  const key = `${place.query.get("range")} ${place.query.get("from")} ${place.query.get("to")}`;
  const range = useMemo(() => (me ? rangeOf(place, me) : null), [me, key]);
  const [title, shown] = view(place);
  useEffect(() => {
    document.title = `${title} · ettwatch`;
  }, [title]);

  if (out || who.error?.status === 401) return <Login />;
  if (!me || !range) return <div class="alone">{who.error ? <Failed text={who.error.message} again={who.again} /> : <Loading />}</div>;
  return (
    <Scenes.Provider value={{ me, place, range }}>
      <Shell title={title}><Guard key={place.path.join("/")}>{shown}</Guard></Shell>
    </Scenes.Provider>
  );
}
