// Estimates category by category: a dot, its whisker, and the truth as a bar where it is known.

import { colour, series as hue } from "./theme.js";

const wideText = (names) => Math.max(...names.map((name) => name.length));

export function dots(panel, width, height, axes, tell) {
  const readers = panel.kind === "answer" ? 1 : panel.data.length;
  const names = panel.x.names, count = names.length;
  const columns = panel.kind === "answer" ? panel.data.length : 3 * readers + 1;
  const long = wideText(names), each = (width - 70) / count;
  const upright = long > 3 && long * 7 + 8 > each;
  const step = Math.max(1, Math.ceil((upright ? 15 : Math.max(18, long * 7 + 10)) / each));
  axes[0] = { ...axes[0], grid: { show: false }, splits: () => names.map((_, at) => at).filter((at) => at % step === 0),
    values: (_, at) => at.map((v) => cut(names[v] ?? "")), rotate: upright ? -40 : 0,
    size: upright ? Math.min(90, 22 + 4.6 * Math.min(14, long)) : 30 };
  const none = { paths: () => null, points: { show: false } };
  return {
    width, height: height + (upright ? 40 : 0), legend: { show: false }, padding: [12, 22, 0, 0], axes,
    scales: { x: { time: false, range: [-0.6, count - 0.4] }, y: { range: (u, low, high) => {
      if (low === null) return [0, 1];
      const pad = (high - low || 1) * 0.06;
      return [low - pad, high + pad];
    } } },
    series: [{}, ...Array.from({ length: columns }, () => ({ ...none }))],
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    hooks: { draw: [(u) => draw(u, panel, readers)], setCursor: [(u) => tell(u, u.cursor.idx)] },
  };
}

const cut = (name) => (name.length > 14 ? `${name.slice(0, 13)}…` : name);

function draw(u, panel, readers) {
  const { ctx, data } = u, dpr = devicePixelRatio, count = data[0].length;
  const x = (at) => u.valToPos(at, "x", true), y = (value) => u.valToPos(value, "y", true);
  const each = x(1) - x(0), apart = readers > 1 ? Math.min(each * 0.8 / readers, 14 * dpr) : 0;
  const radius = Math.max(1.8 * dpr, Math.min(4 * dpr, (readers > 1 ? apart : each) * 0.3));
  const truth = panel.kind === "answer" ? data[4] : data[data.length - 1];
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  const zero = y(0);
  ctx.fillStyle = colour("grid");
  ctx.fillRect(u.bbox.left, zero - dpr, u.bbox.width, 2 * dpr);
  if (truth) {
    ctx.fillStyle = panel.kind === "answer" ? hue(1) : colour("text");
    for (let at = 0; at < count; at += 1) {
      if (truth[at] === null || truth[at] === undefined) continue;
      const half = Math.max(3 * dpr, Math.min(each * 0.42, 26 * dpr));
      ctx.fillRect(x(at) - half, y(truth[at]) - 1.25 * dpr, 2 * half, 2.5 * dpr);
    }
  }
  for (let reader = 0; reader < readers; reader += 1) {
    const [value, low, high] = [1, 2, 3].map((at) => data[3 * reader + at]);
    const shift = (reader - (readers - 1) / 2) * apart;
    ctx.strokeStyle = ctx.fillStyle = hue(panel.series[reader].colour);
    ctx.lineWidth = 1.5 * dpr;
    for (let at = 0; at < count; at += 1) {
      if (value[at] === null) continue;
      const place = x(at) + shift;
      if (low[at] !== null && high[at] !== null) {
        ctx.beginPath();
        ctx.moveTo(place, y(low[at]));
        ctx.lineTo(place, y(high[at]));
        ctx.stroke();
      }
      ctx.beginPath();
      ctx.arc(place, y(value[at]), radius, 0, 2 * Math.PI);
      ctx.fill();
    }
  }
  ctx.restore();
}
