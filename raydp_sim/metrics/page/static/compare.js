// Two or more runs side by side: what differs, what came of it, and their lines in one picture.

import { ask, follow } from "./api.js";
import { h, replace, table } from "./dom.js";
import { Panel } from "./panel.js";
import { grid, link, state } from "./parts.js";

export class Compare {
  constructor(place, names, shell) {
    Object.assign(this, { names, shell, panels: [] });
    this.head = h("div", { class: "intro" });
    this.before = h("div");
    this.stage = h("div", { class: "grid" });
    replace(place, this.head, this.stage, this.before);
    this.stop = follow({}, () => this.load(), (error) => shell.said(error));
  }

  async start() { await this.load(); }

  async load() {
    const found = await ask("compare", this.names.map((name) => ["run", name]));
    replace(this.head, h("h1", { text: "Side by side" }), h("div", { class: "chosen" }, found.runs.map((run) => h("span", {}, h("a", { href: link("run", run.name), text: run.name }), state(run.state)))));
    const head = ["", ...found.runs.map((run) => run.name)];
    replace(this.before,
      h("section", { class: "card" }, h("h2", { text: "What came of them" }), table(head, found.came, { label: "what came of them", class: "wrap" })),
      h("section", { class: "card" }, h("h2", { text: "What differs in their scenarios" }), found.differ.length ? table(head, found.differ, { label: "what differs", class: "wrap" }) : h("p", { class: "note", text: "Nothing that this token opens." })));
    this.panels = grid(found.panels, this.panels, "compare", (panel, file) => new Panel(panel, file));
    const elements = this.panels.map((panel) => panel.element);
    if (elements.length !== this.stage.children.length || elements.some((each, at) => this.stage.children[at] !== each)) replace(this.stage, elements);
  }

  destroy() {
    this.stop();
    for (const panel of this.panels) panel.destroy();
  }
}
