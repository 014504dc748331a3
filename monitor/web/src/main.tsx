import { render } from "preact";
import { App } from "./app";
import { watchLinks } from "./router";

watchLinks();
render(<App />, document.getElementById("app")!);
