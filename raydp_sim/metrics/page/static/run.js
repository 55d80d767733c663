// A run: what came of it so far, what that cost, who took part, and its file.

import { address, ask, follow } from "./api.js";
import { h, pairs, replace, show, table } from "./dom.js";
import { Panel } from "./panel.js";
import { grid, link, progress, state, tile } from "./parts.js";

const TABS = [["results", "Results"], ["privacy", "Privacy"], ["clients", "Clients"], ["communication", "Communication"], ["analysts", "Analysts"], ["data", "Data"], ["scenario", "Scenario"]];
const SPENT = "what-the-clients-have-spent";
const MARKS = { released: "what a reader of the protocol could publish", "simulation-only": "a function of raw data, which no deployment has", ledger: "who took part, and was charged for it" };

export class Run {
  constructor(place, name, tab, stream, shell) {
    Object.assign(this, { place, name, tab: TABS.some(([id]) => id === tab) ? tab : "results", stream, shell, panels: [] });
    this.head = h("div", { class: "intro" });
    this.tabs = h("nav", { class: "tabs", "aria-label": "Parts of the run" });
    this.body = h("div", { class: "body" });
    replace(place, this.head, this.tabs, this.body);
    this.stop = follow({ run: name }, () => this.load(), (error) => shell.said(error));
  }

  async start() { await this.load(); }

  // Another part of the same run: the page stays, and so does what it listens to.
  shows([kind, name, tab, stream]) {
    if (kind !== "run" || name !== this.name) return false;
    for (const panel of this.panels) panel.destroy();
    Object.assign(this, { tab: TABS.some(([id]) => id === tab) ? tab : "results", stream, panels: [], stage: null });
    return true;
  }

  async load() {
    const run = await ask("run", { run: this.name }), { tab, stream } = this;
    // Worked out from the whole ledger, or the scenario, and so only for whoever looks.
    if (tab === "privacy" && run.ledger) this.added(run, null, (await ask("ledger", { run: this.name })).panel);
    if (tab === "clients" && run.availability) this.added(run, "heat", (await ask("availability", { run: this.name })).panel);
    const rows = tab === "data" && stream ? await ask("stream", { run: this.name, stream }) : null;
    // Two may be under way at once; each has a document of its own, and one of a part that was left is not shown.
    if (tab !== this.tab || stream !== this.stream) return;
    Object.assign(this, { run, rows });
    this.draw();
  }

  // In place of one that says less; before the first of a kind, or last.
  added(run, kind, panel) {
    if (!panel) return;
    run.panels = run.panels.filter((each) => each.id !== panel.id);
    const at = run.panels.findIndex((each) => each.kind === kind);
    run.panels.splice(at < 0 ? run.panels.length : at, 0, panel);
  }

  draw() {
    const { run } = this;
    this.header(run);
    const there = new Set(["results", "privacy", "data", "scenario", ...run.panels.map((panel) => panel.tab)]);
    if (run.views) there.add("analysts");
    const focused = document.activeElement?.closest?.(".tabs") ? document.activeElement.getAttribute("href") : null;
    replace(this.tabs, TABS.filter(([id]) => there.has(id)).map(([id, words]) => h("a", { href: link("run", this.name, id), text: words, "aria-current": id === this.tab ? "page" : null })));
    if (focused) this.tabs.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
    if (this.tab === "data") this.data(run);
    else if (this.tab === "scenario") this.scenario(run);
    else this.charts(run);
  }

  header(run) {
    const spent = run.spent, tiles = [];
    if (run.measure) tiles.push(tile(run.measure.label, show(run.measure.value), run.repeat > 1 ? `mean of ${run.repeat} repetitions` : "after the last release"));
    if (spent) tiles.push(tile("epsilon spent", spent.epsilon === null ? "infinite" : show(spent.epsilon), spent.guarantee === "none" ? "no guarantee is claimed" : `client charged most; delta ${show(spent.delta, 3)}`));
    if (run.done !== null) tiles.push(tile("releases", show(run.done), run.total ? `of ${run.state === "over" && run.done < run.total ? "at most " : ""}${show(run.total)}` : ""));
    if (run.clients) tiles.push(tile("clients", show(run.clients), `trust: ${run.trust}`));
    replace(this.head,
      h("div", { class: "titled" }, h("h1", { text: run.name }), state(run.state)),
      h("p", { class: "sub", text: [run.scenario !== run.name && run.scenario, run.task, run.mechanism].filter(Boolean).join(" · ") }),
      run.description ? h("p", { class: "said", text: run.description }) : null,
      run.state === "live" ? progress(run.done, run.total) : null,
      h("div", { class: "tiles" }, tiles),
      spent && spent.assumption ? h("p", { class: "holds" }, h("strong", { text: `Epsilon ${spent.epsilon === null ? "infinite" : show(spent.epsilon)}${run.state === "live" ? " so far" : ""} holds for ` }), spent.assumption, h("span", { class: "sub", text: ` (bound: ${spent.bound})` })) : null);
  }

  charts(run) {
    // What was spent stands beside what it was spent on.
    const own = run.panels.filter((panel) => panel.tab === this.tab || (this.tab === "results" && panel.id === SPENT));
    if (!this.stage) {
      this.before = h("div");
      this.stage = h("div", { class: "grid" });
      replace(this.body, this.before, this.stage);
    }
    const above = [];
    if (this.tab === "privacy") above.push(run.privacy.length ? h("section", { class: "card statement" }, h("h2", { text: "Privacy statement" }), pairs(run.privacy)) : h("p", { class: "empty", text: run.spent === null ? "Nothing was spent yet, or this token does not open what is released." : "" }));
    if (this.tab === "analysts" && run.views) above.push(h("section", { class: "card" }, h("h2", { text: "Analysts side by side" }), table(run.views.head, run.views.rows, { label: "analysts", class: "wrap" })));
    if (this.tab === "communication" && run.facts.length) above.push(h("section", { class: "card" }, h("h2", { text: "What was sent" }), pairs(run.facts)));
    replace(this.before, above);
    this.panels = grid(own, this.panels, run.name, (panel, file) => new Panel(panel, file));
    const elements = this.panels.map((panel) => panel.element);
    if (elements.length !== this.stage.children.length || elements.some((each, at) => this.stage.children[at] !== each)) replace(this.stage, elements);
    if (!own.length && !above.length) replace(this.stage, h("p", { class: "empty", text: run.state === "live" ? "Nothing yet. It appears here with the first release." : "There is nothing here that this token opens." }));
  }

  data(run) {
    const one = this.rows;
    const streams = run.streams.map((each) => [
      h("a", { href: link("run", this.name, "data", each.name), text: each.name, "aria-current": each.name === this.stream ? "true" : null }), each.row, each.visibility,
      h("span", { class: "formats" }, ["csv", "parquet"].map((format) => h("a", { class: "button small", download: "", href: address("download", { run: this.name, stream: each.name, format }), text: format.toUpperCase().replace("PARQUET", "Parquet"), "aria-label": `Download ${each.name} as ${format}` })))]);
    const parts = [];
    if (run.plot) parts.push(h("p", {}, h("a", { class: "button", download: "", href: address("plot", { run: this.name }), text: "Download the run's picture (PNG)" })));
    parts.push(h("section", { class: "card" }, h("h2", { text: "Streams" }), h("p", { class: "note", text: "All rows of a stream; its columns, units and meanings are in the Parquet file's schema." }), table(["stream", "a row is", "who may see it", "download"], streams, { label: "streams", class: "streams" })));
    if (one && one.name === this.stream) parts.push(this.rowsOf(one));
    const drawn = one && one.name === this.stream ? one.panels : [];
    this.panels = grid(drawn, this.panels, `${run.name}-${this.stream}`, (panel, file) => new Panel(panel, file));
    replace(this.body, parts, h("div", { class: "grid" }, this.panels.map((panel) => panel.element)));
  }

  rowsOf(one) {
    const head = one.columns.map((column) => (column.unit ? `${column.name} (${column.unit})` : column.name));
    return h("section", { class: "card", id: "stream" }, h("h2", {}, one.name, h("span", { class: "tags" }, h("span", { class: `tag ${one.visibility}`, text: one.visibility, title: MARKS[one.visibility] }))),
      h("p", { class: "note", text: `${show(one.rows)} rows${one.rows > one.last.length ? `, the last ${one.last.length}:` : ":"}` }),
      one.rows ? table(head, one.last, { label: `rows of ${one.name}`, class: "rows", titles: one.columns.map((column) => column.meaning) }) : h("p", { class: "empty", text: "No rows yet." }));
  }

  scenario(run) {
    if (run.text === null) { replace(this.body, h("p", { class: "empty", text: "This token does not open the scenario." })); return; }
    replace(this.body, h("section", { class: "card" }, h("div", { class: "head" }, h("h2", { text: run.whole ? "scenario.yaml" : "The protocol, as a reader knows it" }), h("a", { class: "button small", download: "", href: address("scenario", { run: this.name }), text: "Download" })),
      run.whole ? null : h("p", { class: "note", text: "Sections about the data and the seed need a token that opens what only a simulation knows." }), h("pre", { tabIndex: 0 }, h("code", { text: run.text }))));
  }

  destroy() {
    this.stop();
    for (const panel of this.panels) panel.destroy();
  }
}

