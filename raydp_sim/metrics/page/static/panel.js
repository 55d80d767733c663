// A panel: its title, who may see what it shows, a legend, the chart, and ways to take it away.

import { HEIGHT, data, make, options, said } from "./chart.js";
import { h, replace, show } from "./dom.js";
import { Heat } from "./heat.js";
import { save, toCsv, toPng } from "./save.js";
import { onTheme, series as hue } from "./theme.js";

const WORDS = {
  "simulation-only": ["simulation", "Only a simulation knows this: it is a function of raw data."],
  ledger: ["ledger", "From the ledger: who took part, and was charged for it."],
};

export class Panel {
  constructor(panel, file) {
    this.panel = panel;
    this.file = file;
    this.hidden = new Set();
    this.width = 0;
    this.title = h("h3", { text: panel.title, id: `panel-${panel.id}` });
    this.note = h("p", { class: "note" });
    this.legend = h("div", { class: "legend" });
    this.chart = h("div", { class: `chart ${panel.kind}`, tabIndex: 0, role: "group", "aria-label": `${panel.title}. Left and right arrows read values.`, on: { keydown: (event) => this.key(event), blur: () => this.hide() } });
    this.tip = h("div", { class: "tip", hidden: true });
    this.live = h("p", { class: "unseen", role: "status" });
    this.element = h("section", { class: "panel", "data-panel": panel.id, "aria-labelledby": `panel-${panel.id}` },
      h("div", { class: "head" }, h("div", {}, this.title, this.tags()), h("div", { class: "take" },
        h("button", { class: "quiet small", type: "button", text: "PNG", title: "Download this picture as PNG", "aria-label": `Download ${panel.title} as PNG`, on: { click: () => this.png() } }),
        h("button", { class: "quiet small", type: "button", text: "CSV", title: "Download the points of this picture as CSV", "aria-label": `Download ${panel.title} as CSV`, on: { click: () => save(new Blob([toCsv(this.panel)], { type: "text/csv" }), `${file}-${panel.id}.csv`) } }))),
      this.note, this.legend, h("div", { class: "around" }, this.chart, this.tip), this.live);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.chart);
    this.untheme = onTheme(() => this.rebuild());
    this.words();
  }

  tags() {
    return h("span", { class: "tags" }, this.panel.marks.filter((mark) => mark in WORDS).map((mark) => h("span", { class: `tag ${mark}`, text: WORDS[mark][0], title: WORDS[mark][1] })));
  }

  words() {
    this.title.textContent = this.panel.title;
    this.note.textContent = this.panel.note ?? "";
    this.note.hidden = !this.panel.note;
    this.element.dataset.rows = this.panel.rows ?? this.panel.data?.[0]?.length ?? 0;
    if (this.panel.kind === "heat") return;
    const entries = this.panel.series.map((each, at) => this.entry(each, at));
    if (this.panel.kind === "beside" && this.panel.truth) entries.push(this.entry({ label: "truth (simulation)", colour: -1 }, -1));
    if (this.panel.withheld?.length) entries.push(h("span", { class: "key" }, h("span", { class: "cross", "aria-hidden": "true", text: "×" }), "withheld: batch too small"));
    if (entries.length === 1 && this.panel.kind !== "answer") entries.pop();
    replace(this.legend, entries);
  }

  entry(each, at) {
    const line = h("span", { class: `line ${each.style ?? ""}`, "aria-hidden": "true" });
    line.style.setProperty("--line", hue(each.colour));
    if (this.panel.kind !== "lines") return h("span", { class: "key" }, line, each.label);
    return h("button", { class: "key", type: "button", "aria-pressed": String(!this.hidden.has(at)), on: { click: (event) => this.toggle(at, event.currentTarget) } }, line, each.label);
  }

  toggle(at, button) {
    if (this.hidden.has(at)) this.hidden.delete(at); else this.hidden.add(at);
    button.setAttribute("aria-pressed", String(!this.hidden.has(at)));
    this.dress();
  }

  dress() {
    const lines = this.panel.data.length - 1;
    for (const at of this.panel.series.keys()) {
      const shown = !this.hidden.has(at);
      this.made.setSeries(1 + at, { show: shown });
      if (this.panel.bands?.length) for (const edge of [0, 1]) this.made.setSeries(1 + lines + 2 * at + edge, { show: shown });
    }
  }

  resize() {
    const width = Math.floor(this.chart.clientWidth);
    if (width < 40 || width === this.width) return;
    this.width = width;
    if (this.panel.kind === "heat" && this.made) this.made.setSize({ width });
    else if (this.made && this.panel.kind === "lines") this.made.setSize({ width, height: HEIGHT });
    else this.rebuild();
  }

  rebuild() {
    if (!this.width) return;
    if (this.panel.kind === "heat") {
      if (this.made) this.made.draw(); else this.made = new Heat(this.chart, this.panel, this.width, (words, x, y) => (words ? this.tell(words, x, y) : this.hide()));
      return;
    }
    const zoom = this.zoomed();
    this.made?.destroy();
    this.made = make(options(this.panel, this.width, (u, at) => this.point(u, at)), data(this.panel), this.chart);
    if (zoom) this.made.setScale("x", zoom);
    if (this.panel.kind === "lines" && this.hidden.size) this.dress();
    this.words();
  }

  zoomed() {
    if (!this.made || this.panel.kind !== "lines") return null;
    const all = this.made.data[0], { min, max } = this.made.scales.x;
    const whole = !all.length || (min <= all[0] && max >= all[all.length - 1]);
    return whole ? null : { min, max };
  }

  // New data of the same panel: what was zoomed in on stays.
  update(panel) {
    const same = panel.kind === this.panel.kind && panel.series?.length === this.panel.series?.length && panel.y.log === this.panel.y?.log && (panel.bands?.length ?? 0) === (this.panel.bands?.length ?? 0) && panel.kind === "lines";
    if (JSON.stringify(panel) === JSON.stringify(this.panel)) return;
    const few = (each) => each.data?.[0]?.length <= 60;
    const dotted = same && few(panel) === few(this.panel);
    this.panel = panel;
    this.words();
    if (!this.made) return;
    if (panel.kind === "heat") this.made.set(panel);
    else if (dotted) {
      const zoom = this.zoomed();
      this.made.setData(data(panel), !zoom);
      if (zoom) this.made.setScale("x", zoom);
    } else this.rebuild();
  }

  point(u, at) {
    if (at === null || at === undefined) return this.hide();
    const { panel } = this, lines = [];
    let head;
    if (panel.kind === "answer" || panel.kind === "beside") {
      head = panel.x.names[at];
      const readers = panel.kind === "answer" ? [panel.data] : panel.data;
      readers.forEach(([value, low, high], reader) => {
        const half = low[at] === null ? "" : ` ± ${show((high[at] - low[at]) / 2, 3)}`;
        lines.push([panel.kind === "answer" ? "estimate" : panel.series[reader].label, `${show(value[at])}${half}`, panel.series[reader].colour]);
      });
      const truth = panel.kind === "answer" ? panel.data[3] : panel.truth;
      if (truth) lines.push(["truth", show(truth[at]), panel.kind === "answer" ? 1 : -1]);
    } else {
      const x = panel.data[0][at], wide = panel.x.wide ?? 1;
      if (panel.x.bins) head = `${panel.x.label} ${show(x - wide / 2)} to ${show(x + wide / 2)}`;
      else head = panel.kind === "bars" && wide > 1 ? `${show(x)} to ${show(x + wide - 1)} ${panel.x.label}` : `${panel.x.label} ${show(x)}`;
      panel.series.forEach((each, line) => {
        const value = panel.data[1 + line][at];
        if (!this.hidden.has(line) && value !== null && value !== undefined) lines.push([each.label, said(value, panel.y), each.colour]);
      });
    }
    const across = u.valToPos(u.data[0][at], "x") + u.over.offsetLeft;
    return lines.length ? this.tell({ head, lines }, across, u.over.offsetTop + 10) : this.hide();
  }

  tell({ head, lines }, x, y) {
    const key = (number) => { const made = h("i", { "aria-hidden": "true" }); if (number !== undefined) made.style.background = hue(number); return number === undefined ? null : made; };
    replace(this.tip, h("strong", { text: head }), lines.map(([name, value, number]) => h("div", {}, h("span", {}, key(number), name), h("b", { text: value }))));
    this.tip.hidden = false;
    const room = this.chart.clientWidth, wide = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, x + 14 + wide > room ? x - wide - 14 : x + 14)}px`;
    this.tip.style.top = `${y}px`;
    if (document.activeElement === this.chart) this.live.textContent = `${head}: ${lines.map(([name, value]) => `${name} ${value}`).join(", ")}`;
  }

  hide() { this.tip.hidden = true; }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!this.made || (!step && !(down && this.panel.kind === "heat") && event.key !== "Escape")) return;
    event.preventDefault();
    if (event.key === "Escape") return this.hide();
    if (this.panel.kind === "heat") {
      const [row, column] = this.made.at ?? [0, -1], { cells } = this.panel;
      return this.made.move(Math.max(0, Math.min(cells.length - 1, row + (down ?? 0))), Math.max(0, Math.min(cells[0].length - 1, column + (step ?? 0))));
    }
    const u = this.made, last = u.data[0].length - 1;
    const at = Math.max(0, Math.min(last, (u.cursor.idx ?? (step > 0 ? -1 : last + 1)) + step));
    u.setCursor({ left: u.valToPos(u.data[0][at], "x"), top: 10 });
    return this.point(u, at);
  }

  async png() {
    const canvas = this.chart.querySelector("canvas");
    if (canvas) save(await toPng(canvas, this.panel), `${this.file}-${this.panel.id}.png`);
  }

  destroy() {
    this.watch.disconnect();
    this.untheme();
    if (this.made?.destroy) this.made.destroy();
  }
}
