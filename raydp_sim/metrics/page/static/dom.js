// Elements are made here and nowhere else. Text is always text: names of runs are whatever their
// owner called them, and are never read as markup.

export function h(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (name === "text") made.textContent = value;
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

export function replace(place, ...children) {
  place.replaceChildren(...children.flat().filter((each) => each));
}

export function table(head, rows, options = {}) {
  const numeric = head.map((_, at) => rows.length > 0 && rows.every((row) => row[at] === null || typeof row[at] === "number"));
  const cell = (value, at) => h("td", { class: numeric[at] ? "n" : "", "data-label": head[at] }, typeof value === "number" ? show(value) : value === null || value === undefined ? "–" : value === true ? "yes" : value === false ? "no" : value instanceof Node ? value : String(value));
  return h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": options.label ?? "table" },
    h("table", { class: options.class ?? "" },
      h("thead", {}, h("tr", {}, head.map((name, at) => h("th", { class: numeric[at] ? "n" : "", scope: "col", title: options.titles?.[at] || null }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell))))));
}

export function pairs(rows) {
  return h("dl", { class: "pairs" }, rows.flatMap(([name, said]) => [h("dt", { text: name }), h("dd", { text: said })]));
}

// Numbers as people read them.

export function show(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(digits - 2).replace(/\.?0+e/, "e");
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 10 });
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (Math.abs(value) >= 1000 && at < units.length - 1) { value /= 1000; at += 1; }
  return `${Number(value.toPrecision(3))} ${units[at]}`;
}

export function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  for (const [size, word] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
    const count = Math.floor(past / size);
    if (count >= 1) return `${count} ${word}${count > 1 ? "s" : ""} ago`;
  }
  return "just now";
}
