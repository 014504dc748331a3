// All jobs, in pages: filtered, searched, sorted.
import { useEffect, useRef } from "preact/hooks";
import { address, useAnswer } from "../api";
import { useScene } from "../context";
import { count } from "../format";
import { Empty, Shown } from "../parts/answer";
import { Filters } from "../parts/filters";
import { Jobs } from "../parts/jobs";
import { Pick } from "../parts/pick";
import { RangeBar } from "../range";
import { changed, set } from "../router";
import { STATUS } from "../terms";
import type { JobPage } from "../types";

const SIZE = 50;

export function JobsView() {
  const { me, place, range } = useScene();
  const query = (name: string) => place.query.get(name);
  // "-" stands for those that name none; the server takes the empty text for them.
  const whose = (name: string) => (query(name) === "-" ? "" : query(name));
  const page = Math.max(1, Number(query("page")) || 1);
  const sort = query("sort") ?? "-lost";
  const search = useRef<HTMLInputElement>(null);
  const timer = useRef<number | undefined>(undefined);
  const url = address(["jobs"], {
    from: range.from, to: range.to, team: whose("team"), model: whose("model"), cluster: whose("cluster"), status: query("status"), q: query("q"), sort, page, size: SIZE,
  });
  const answer = useAnswer<JobPage>(url, { live: true });
  const filter = (name: string) => (value: string | null) => set({ [name]: value, page: null });
  const typed = () => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => set({ q: search.current?.value.trim() ?? null, page: null }, { replace: true }), 300);
  };
  const asked = query("q") ?? "";
  useEffect(() => {
    // The back button changes what is asked, not what somebody is typing.
    if (search.current && document.activeElement !== search.current) search.current.value = asked;
  }, [asked]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <>
      <div class="head">
        <h1>Jobs</h1>
        <RangeBar range={range} />
      </div>
      <Filters set={["q", "team", "model", "cluster", "status"].filter((name) => query(name)).length}>
        <label class="pick"><span>Name holds</span><input ref={search} type="search" defaultValue={asked} onInput={typed} placeholder="any" spellcheck={false} /></label>
        <Pick label="Team" value={query("team") ?? ""} names={me.teams} onPick={filter("team")} />
        <Pick label="Model" value={query("model") ?? ""} names={me.models} onPick={filter("model")} />
        <Pick label="Cluster" value={query("cluster") ?? ""} names={me.clusters} onPick={filter("cluster")} />
        <label class="pick"><span>Status</span>
          <select value={query("status") ?? ""} onChange={(event) => filter("status")((event.target as HTMLSelectElement).value || null)}>
            <option value="">all</option>
            <option value="live">not over</option>
            {Object.keys(STATUS).map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        </label>
        <a class="reset" href="/jobs">Clear filters</a>
      </Filters>
      <Shown answer={answer} what="jobs">{(data) => {
        const last = Math.max(1, Math.ceil(data.total / data.size));
        return data.jobs.length ? (
          <section class="panel" aria-label="Jobs that fit">
            <p class="note" role="status">{count(data.total)} {data.total === 1 ? "job fits" : "jobs fit"}; {count((data.page - 1) * data.size + 1)} to {count((data.page - 1) * data.size + data.jobs.length)} are shown.</p>
            <Jobs label="Jobs" rows={data.jobs} sorted={data.sort} onSort={(by) => set({ sort: by === "-lost" ? null : by, page: null })}
              columns={["job", "status", "team", "gpus", "begun", "e2e", "ett", "lost", "worst", "tts", "nof", "recovery", "model", "cluster"]} />
            <nav class="pages" aria-label="Pages">
              {data.page > 1 ? <a href={changed({ page: data.page === 2 ? null : data.page - 1 })} rel="prev">← Previous</a> : <span class="hint">← Previous</span>}
              <span>Page {count(data.page)} of {count(last)}</span>
              {data.page < last ? <a href={changed({ page: data.page + 1 })} rel="next">Next →</a> : <span class="hint">Next →</span>}
            </nav>
          </section>
        ) : data.total ? <Empty title="This page is beyond the last one."><p><a href={changed({ page: null })}>Go to the first page</a></p></Empty>
          : <Empty title="No job fits."><p>Choose another time, or <a href="/jobs">clear the filters</a>.</p></Empty>;
      }}</Shown>
    </>
  );
}
