// Taking a panel away: as a picture with its title and legend, or as the points that it shows.

import { colour, series as hue } from "./theme.js";

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replace(/[^A-Za-z0-9._-]+/g, "_");
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export function toPng(chart, panel) {
  const dpr = devicePixelRatio || 1, pad = 16 * dpr, line = 20 * dpr;
  const keys = panel.kind === "heat" ? [] : panel.series.map((each) => [each.label, hue(each.colour)]);
  if (panel.kind === "beside" && panel.truth) keys.push(["truth (simulation)", hue(-1)]);
  const made = document.createElement("canvas"), context = made.getContext("2d");
  const above = pad + 26 * dpr + (keys.length > 1 ? keys.length : 0) * line;
  made.width = chart.width + 2 * pad;
  made.height = chart.height + above + pad;
  context.fillStyle = colour("card");
  context.fillRect(0, 0, made.width, made.height);
  context.fillStyle = colour("text");
  context.textBaseline = "top";
  context.font = `600 ${15 * dpr}px system-ui, sans-serif`;
  context.fillText(panel.title, pad, pad);
  context.font = `${12 * dpr}px system-ui, sans-serif`;
  if (keys.length > 1) keys.forEach(([label, stroke], at) => {
    const top = pad + 26 * dpr + at * line;
    context.fillStyle = stroke;
    context.fillRect(pad, top + 5 * dpr, 18 * dpr, 3 * dpr);
    context.fillStyle = colour("text");
    context.fillText(label, pad + 26 * dpr, top);
  });
  context.drawImage(chart, pad, above);
  return new Promise((done) => { made.toBlob(done, "image/png"); });
}

const quote = (value) => {
  if (value === null || value === undefined) return "";
  const text = String(value);
  return typeof value === "number" ? text : `"${text.replaceAll('"', '""')}"`;
};

export function toCsv(panel) {
  const rows = [];
  if (panel.kind === "heat") {
    const { x, y, cells, value } = panel, step = (x.to - x.from) / cells[0].length;
    rows.push(["row", `${x.label} ${x.unit ?? ""}`.trim(), value]);
    cells.forEach((row, at) => row.forEach((cell, column) => rows.push([y.names[at], x.from + column * step, cell])));
  } else if (panel.kind === "answer") {
    rows.push(["name", "estimate", "low", "high", ...(panel.data[3] ? ["truth"] : [])]);
    panel.x.names.forEach((name, at) => rows.push([name, ...panel.data.map((column) => column[at])]));
  } else if (panel.kind === "beside") {
    rows.push(["category", ...panel.series.flatMap((each) => [each.label, `${each.label} low`, `${each.label} high`]), ...(panel.truth ? ["truth"] : [])]);
    panel.x.names.forEach((name, at) => rows.push([name, ...panel.data.flat().map((column) => column[at]), ...(panel.truth ? [panel.truth[at]] : [])]));
  } else {
    rows.push([panel.x.label, ...panel.series.map((each) => each.label)]);
    panel.data[0].forEach((_, at) => rows.push(panel.data.map((column) => column[at])));
  }
  return `${rows.map((row) => row.map(quote).join(",")).join("\n")}\n`;
}
