// The list of runs: search, choose, compare.

import { ask, follow } from "./api.js";
import { ago, h, replace, show } from "./dom.js";
import { link, progress, state } from "./parts.js";

const MOST = 8;

export class List {
  constructor(place, given, shell) {
    this.shell = shell;
    this.runs = [];
    this.chosen = new Set();
    this.search = h("input", { type: "search", id: "search", placeholder: "Search name, scenario, task, mechanism, state", "aria-label": "Search runs", autocomplete: "off", spellcheck: "false", on: { input: () => this.searched() } });
    this.search.value = given.get("q") ?? "";
    this.count = h("p", { class: "count", role: "status" });
    this.rows = h("div", { class: "runs" });
    this.compare = h("a", { class: "button", text: "Compare" });
    this.bar = h("div", { class: "bar", hidden: true }, h("span", {}), this.compare, h("button", { class: "quiet", type: "button", text: "Clear", on: { click: () => { this.chosen.clear(); this.draw(); } } }));
    replace(place, h("div", { class: "intro" }, h("h1", { text: "Runs" }), this.count), h("div", { class: "search" }, this.search, h("kbd", { text: "/", title: "Press / to search" })), this.rows, this.bar);
    replace(this.rows, h("p", { class: "empty", text: "Looking for runs" }));
    this.stop = follow({}, () => this.load(), (error) => shell.said(error));
    this.key = (event) => { if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) { event.preventDefault(); this.search.focus(); } };
    addEventListener("keydown", this.key);
  }

  async start() { await this.load(); }

  async load() {
    const found = await ask("runs");
    this.runs = found.runs;
    this.scopes = found;
    this.draw();
  }

  searched() {
    const q = this.search.value;
    history.replaceState(history.state, "", q ? `#/?q=${encodeURIComponent(q)}` : "#/");
    this.draw();
  }

  matching() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const order = { live: 0, interrupted: 1, over: 1, damaged: 1 };
    return this.runs
      .filter((run) => { const text = [run.name, run.scenario, run.task, run.mechanism, run.trust, run.state].join(" ").toLowerCase(); return words.every((word) => text.includes(word)); })
      .sort((a, b) => order[a.state] - order[b.state] || b.updated - a.updated || a.name.localeCompare(b.name));
  }

  draw() {
    const found = this.matching();
    const live = this.runs.filter((run) => run.state === "live").length;
    this.count.textContent = this.search.value ? `${found.length} of ${this.runs.length} runs` : `${this.runs.length} run${this.runs.length === 1 ? "" : "s"}${live ? `, ${live} live` : ""}`;
    if (!this.runs.length) replace(this.rows, h("div", { class: "empty" }, h("h2", { text: "No runs yet" }), h("p", {}, "Play one, and it appears here by itself: ", h("code", { text: "raydp-sim run quickstart" }))));
    else if (!found.length) replace(this.rows, h("div", { class: "empty" }, h("p", { text: "Nothing matches." })));
    else this.table(found);
    const bar = this.bar.firstChild, names = [...this.chosen];
    this.bar.hidden = !names.length;
    bar.textContent = names.length < 2 ? "Choose one more to compare" : names.length > MOST ? `Choose at most ${MOST}` : `${names.length} runs chosen`;
    const fine = names.length >= 2 && names.length <= MOST;
    if (fine) this.compare.setAttribute("href", link("compare", ...names)); else this.compare.removeAttribute("href");
    this.compare.setAttribute("aria-disabled", String(!fine));
  }

  table(found) {
    const focus = document.activeElement?.dataset?.key;
    const head = ["", "run", "what", "releases", "result", "epsilon", "updated"];
    replace(this.rows, h("table", { class: "list" },
      h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col", class: ["result", "epsilon"].includes(name) ? "n" : "" }, name || h("span", { class: "unseen", text: "choose" }))))),
      h("tbody", {}, found.map((run) => this.row(run)))));
    if (focus) [...this.rows.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focus)?.focus();
  }

  row(run) {
    const choose = h("input", { type: "checkbox", checked: this.chosen.has(run.name), "data-key": `choose ${run.name}`, "aria-label": `Choose ${run.name} to compare`, on: { change: (event) => { if (event.target.checked) this.chosen.add(run.name); else this.chosen.delete(run.name); this.draw(); } } });
    const what = [run.task, run.mechanism].filter(Boolean).join(" · ");
    return h("tr", {},
      h("td", { class: "choose" }, choose),
      h("td", { class: "name" }, h("a", { href: link("run", run.name), "data-key": `open ${run.name}`, text: run.name }), h("span", { class: "sub", text: run.scenario === run.name ? "" : run.scenario })),
      h("td", { "data-label": "what" }, h("span", { text: what || "–" }), h("span", { class: "sub", text: [run.trust && `trust ${run.trust}`, run.clients && `${show(run.clients)} clients`].filter(Boolean).join(", ") })),
      h("td", { "data-label": "releases" }, state(run.state), run.state === "over" ? h("span", { class: "sub", text: run.done === null ? "" : `${show(run.done)} release${run.done === 1 ? "" : "s"}` }) : progress(run.done, run.total)),
      h("td", { class: "n", "data-label": "result" }, run.measure ? [h("span", { text: show(run.measure.value) }), h("span", { class: "sub", text: run.measure.label })] : "–"),
      h("td", { class: "n", "data-label": "epsilon" }, run.infinite ? "infinite" : show(run.epsilon)),
      h("td", { class: "when", "data-label": "updated" }, ago(run.updated)));
  }

  destroy() {
    this.stop();
    removeEventListener("keydown", this.key);
  }
}
