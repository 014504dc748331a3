// Builds the page: src/ becomes hashed files and an index.html in the folder named by the first argument
// (default: where the Python package ships them). The same sources and lock file give the same bytes.
import { createHash } from "node:crypto";
import { build } from "esbuild";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../ettwatch_monitor/web/static"));

const assets = join(out, "assets");

rmSync(assets, { recursive: true, force: true });
mkdirSync(assets, { recursive: true });

const result = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx", style: "src/style.css", theme: "src/theme-first.ts" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022", "chrome110", "firefox110", "safari16"],
  jsx: "automatic",
  jsxImportSource: "preact",
  entryNames: "[name]-[hash]",
  legalComments: "none",
  outdir: assets,
  metafile: true,
  logLevel: "warning",
});

const names = {};
for (const [path, output] of Object.entries(result.metafile.outputs)) {
  if (output.entryPoint) names[output.entryPoint] = path.split("/").pop();
}
const html = readFileSync(join(here, "src/index.html"), "utf8")
  .replace("{{style}}", names["src/style.css"])
  .replace("{{theme}}", names["src/theme-first.ts"])
  .replace("{{app}}", names["src/main.tsx"]);
writeFileSync(join(out, "index.html"), html);
writeFileSync(join(assets, "icon.svg"), readFileSync(join(here, "src/icon.svg")));
const licence = readFileSync(join(here, "node_modules/preact/LICENSE"), "utf8");
writeFileSync(join(out, "LICENSES.txt"), `assets/app-*.js contains Preact, which is licensed as follows.\n\n${licence}`);

// From what it was built, so that a test without Node sees when the sources have moved on.
const digest = createHash("sha256");
const inside = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
for (const file of ["build.mjs", "package-lock.json", ...inside.map((path) => relative(here, path)).sort()]) {
  digest.update(`${file}\0`).update(readFileSync(join(here, file))).update("\0");
}
writeFileSync(join(out, "SOURCES.txt"), `sha256 of the sources: ${digest.digest("hex")}\n`);
