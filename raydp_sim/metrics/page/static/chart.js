// Lines, bars and dots, drawn by uPlot from the panels of a document.

import uPlot from "./vendor/uplot/uPlot.esm.js";
import { bytes, show } from "./dom.js";
import { colour, faint, series as hue } from "./theme.js";
import { dots } from "./dots.js";

const FONT = "12px system-ui, sans-serif";
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7];

export const HEIGHT = 270;

export function said(value, axis) {
  if (value === null || value === undefined) return "–";
  if (axis.unit === "bytes") return bytes(value);
  return show(value, 5);
}

const label = (axis) => [axis.label, axis.unit && axis.unit !== "share" && axis.unit !== "bytes" ? `(${axis.unit})` : ""].filter(Boolean).join(" ");

function tick(value, unit) {
  if (value === null) return "";
  if (unit === "bytes") return bytes(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(1).replace(".0", "");
  return Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 8 });
}

const short = (value) => (value !== null && Math.abs(value) >= 1e4 ? value.toLocaleString("en", { notation: "compact" }) : tick(value));

// Of an axis of logarithms that spans much, only the powers of ten have lines.
function powers(u, at) {
  const [low, high] = [at[0], at[at.length - 1]];
  return high / low < 100 ? at : at.map((v) => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9 ? v : null));
}

function axes(panel) {
  const line = { stroke: colour("muted"), font: FONT, labelFont: FONT, labelGap: 4, labelSize: 20,
    grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1, size: 5 } };
  const x = { ...line, label: label(panel.x), size: 34, values: (_, at) => at.map((v) => short(v)) };
  if (panel.x.label === "release" || (panel.kind === "bars" && !panel.x.bins)) x.incrs = WHOLE;
  if (panel.x.log) Object.assign(x, { space: 46, grid: { ...line.grid, filter: powers } });
  const y = { ...line, label: label(panel.y), size: (u, values) => 14 + Math.max(26, ...(values ?? []).map((v) => 7 * String(v).length)),
    values: (_, at) => at.map((v) => tick(v, panel.y.unit)) };
  if (panel.y.log) y.grid = { ...line.grid, filter: powers };
  return [x, y];
}

function scales(panel) {
  const one = (u, low, high) => (low === null ? [0, 1] : low === high ? [low - 0.5, high + 0.5] : [low, high]);
  const x = { time: false, distr: panel.x.log ? 3 : 1 };
  if (!panel.x.log) x.range = panel.kind === "bars" ? (u, low, high) => [low - panel.x.wide * 0.7, high + panel.x.wide * 0.7] : one;
  const y = { distr: panel.y.log ? 3 : 1 };
  if (!panel.y.log) {
    y.range = (u, low, high) => {
      if (low === null) return [0, 1];
      const from = panel.y.zero ? Math.min(0, low) : low;
      const pad = (high - from || Math.abs(high) || 1) * 0.07;
      return [panel.y.zero && low >= 0 ? 0 : from - pad, high + pad];
    };
  }
  return { x, y };
}

// Data as uPlot wants it: of each line that has a band also its two edges.
function columns(panel) {
  const found = [...panel.data];
  for (const band of panel.bands ?? []) found.push(band[0], band[1]);
  return found;
}

function lines(panel) {
  const [x, ...rest] = panel.data;
  const made = rest.map((values, at) => {
    const said = panel.series[at], main = hue(said.colour);
    const few = values.filter((v) => v !== null).length <= 60;
    const below = said.style === "below";
    return {
      label: said.label, stroke: below ? faint(main, 0.4) : main, width: below ? 5 : 2,
      dash: said.style === "dashed" ? [6, 5] : undefined, spanGaps: Boolean(said.gaps),
      paths: said.style === "steps" ? uPlot.paths.stepped({ align: 1 }) : undefined,
      points: { show: few && !below && said.style !== "dashed", size: 6, fill: main, stroke: main, width: 0 },
    };
  });
  const edges = (panel.bands ?? []).flatMap((_, at) => {
    const none = { width: 0, stroke: "transparent", points: { show: false }, spanGaps: Boolean(panel.series[at].gaps) };
    return [{ ...none }, { ...none }];
  });
  const bands = (panel.bands ?? []).map((_, at) => ({
    series: [1 + rest.length + 2 * at + 1, 1 + rest.length + 2 * at], fill: faint(hue(panel.series[at].colour), 0.16),
  }));
  return { series: [{}, ...made, ...edges], bands };
}

function marks(panel) {
  return (u) => {
    if (!panel.withheld?.length) return;
    const { ctx } = u, low = u.bbox.top + u.bbox.height, size = 4 * devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = colour("muted");
    ctx.lineWidth = 1.4 * devicePixelRatio;
    ctx.beginPath();
    for (const at of panel.withheld) {
      const x = u.valToPos(at, "x", true);
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
      ctx.moveTo(x - size, low - 3 * size); ctx.lineTo(x + size, low - size);
      ctx.moveTo(x + size, low - 3 * size); ctx.lineTo(x - size, low - size);
    }
    ctx.stroke();
    ctx.restore();
  };
}

export function options(panel, width, tell) {
  if (panel.kind === "answer" || panel.kind === "beside") return dots(panel, width, HEIGHT, axes(panel), tell);
  const { series, bands } = panel.kind === "bars" ? bars(panel) : lines(panel);
  return {
    width, height: HEIGHT, series, bands, axes: axes(panel), scales: scales(panel), legend: { show: false },
    padding: [12, 22, 0, 0], cursor: { y: false, points: { size: 8 }, drag: { x: true, y: false, setScale: true } },
    hooks: { draw: [marks(panel)], setCursor: [(u) => tell(u, u.cursor.idx)] },
  };
}

function bars(panel) {
  const main = hue(panel.series[0].colour);
  return { bands: [], series: [{}, { label: panel.series[0].label, stroke: main, fill: faint(main, 0.7), width: 0,
    paths: uPlot.paths.bars({ size: [0.86, 60] }), points: { show: false } }] };
}

export function data(panel) {
  if (panel.kind === "answer") return [panel.data[0].map((_, at) => at), ...panel.data];
  if (panel.kind === "beside") return [panel.data[0][0].map((_, at) => at), ...panel.data.flat(), panel.truth ?? panel.data[0][0].map(() => null)];
  return columns(panel);
}

export const make = (options, data, place) => new uPlot(options, data, place);
