// Small things that several pages have.

import { h, show } from "./dom.js";

export const link = (...path) => `#/${path.map(encodeURIComponent).join("/")}`;

const STATES = { live: "live", over: "finished", interrupted: "interrupted" };

export function state(name) {
  return h("span", { class: `state ${name}` }, h("span", { class: "dot", "aria-hidden": "true" }), STATES[name] ?? name);
}

export function progress(done, total) {
  if (done === null || done === undefined) return null;
  const share = total ? Math.min(1, done / total) : 0;
  const bar = h("span", { class: "fill" });
  bar.style.width = `${100 * share}%`;
  return h("span", { class: "progress" }, h("span", { class: "track", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": String(total ?? 0), "aria-valuenow": String(done), "aria-label": "releases" }, bar), h("span", { class: "sub", text: total ? `${show(done)} of ${show(total)}` : show(done) }));
}

export function tile(name, value, below) {
  return h("div", { class: "tile" }, h("span", { class: "name", text: name }), h("span", { class: "value", text: value }), h("span", { class: "sub", text: below ?? "" }));
}

export function grid(panels, shown, file, make) {
  // Panels that are there already are given their new data; nothing jumps.
  const known = new Map(shown.map((each) => [each.panel.id, each]));
  const now = panels.map((panel) => {
    const old = known.get(panel.id);
    if (old && old.panel.kind === panel.kind) { old.update(panel); known.delete(panel.id); return old; }
    return make(panel, file);
  });
  for (const gone of known.values()) gone.destroy();
  return now;
}
