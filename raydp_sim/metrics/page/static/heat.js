// Heat maps on a canvas: one colour, darker where there is more.

import { show } from "./dom.js";
import { colour } from "./theme.js";

const LEFT = 86, TOP = 8, BELOW = 44, RIGHT = 14, BAR = 26;

function ramp(share) {
  const parse = (name) => { const value = parseInt(colour(name).slice(1), 16); return [value >> 16, (value >> 8) & 255, value & 255]; };
  const stops = [parse("heat0"), parse("heat1"), parse("heat2")];
  const at = Math.min(1, Math.max(0, share)) * 2, low = Math.min(1, Math.floor(at)), part = at - low;
  return `rgb(${[0, 1, 2].map((k) => Math.round(stops[low][k] + (stops[low + 1][k] - stops[low][k]) * part)).join(",")})`;
}

export class Heat {
  constructor(place, panel, width, tell) {
    this.canvas = document.createElement("canvas");
    place.replaceChildren(this.canvas);
    this.tell = tell;
    this.at = null;
    this.canvas.addEventListener("pointermove", (event) => this.point(event.offsetX, event.offsetY));
    this.canvas.addEventListener("pointerleave", () => { this.at = null; this.tell(null); this.draw(); });
    this.set(panel, width);
  }

  set(panel, width = this.width) {
    this.panel = panel;
    this.width = width;
    const rows = panel.cells.length;
    this.cell = Math.max(rows > 30 ? 5 : 9, Math.min(26, 300 / rows));
    this.height = TOP + rows * this.cell + BELOW + BAR;
    this.draw();
  }

  setSize({ width }) { this.set(this.panel, width); }

  get wide() { return (this.width - LEFT - RIGHT) / this.panel.cells[0].length; }

  point(x, y) {
    const column = Math.floor((x - LEFT) / this.wide), row = Math.floor((y - TOP) / this.cell);
    this.move(row, column);
  }

  move(row, column) {
    const cells = this.panel.cells;
    this.at = row >= 0 && row < cells.length && column >= 0 && column < cells[0].length ? [row, column] : null;
    this.draw();
    this.tell(this.at && this.words(...this.at), LEFT + (column + 0.5) * this.wide, TOP + (row + 0.5) * this.cell);
  }

  words(row, column) {
    const { x, y, cells, value } = this.panel, step = (x.to - x.from) / cells[0].length;
    const from = show(x.from + column * step, 4), to = show(x.from + (column + 1) * step, 4);
    return { head: `${y.names[row]} · ${x.label} ${from} to ${to} ${x.unit ?? ""}`, lines: [[value, cells[row][column] === null ? "nothing" : show(cells[row][column])]] };
  }

  draw() {
    const { panel, width, height, canvas } = this, dpr = devicePixelRatio || 1, context = canvas.getContext("2d");
    canvas.width = Math.round(width * dpr);
    canvas.height = Math.round(height * dpr);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.scale(dpr, dpr);
    context.font = "12px system-ui, sans-serif";
    const { cells } = panel, most = Math.max(1e-12, ...cells.flat().filter((v) => v !== null));
    cells.forEach((row, at) => row.forEach((value, column) => {
      context.fillStyle = value === null ? colour("none") : ramp(value / most);
      context.fillRect(LEFT + column * this.wide, TOP + at * this.cell, Math.max(0.5, this.wide - (this.wide > 6 ? 1 : -0.3)), this.cell - (this.cell > 8 ? 1 : -0.3));
    }));
    if (this.at) {
      context.strokeStyle = colour("text");
      context.lineWidth = 1.5;
      context.strokeRect(LEFT + this.at[1] * this.wide, TOP + this.at[0] * this.cell, this.wide, this.cell);
    }
    this.labels(context, most);
  }

  labels(context, most) {
    const { x, y, cells, value } = this.panel, { width, cell } = this, low = TOP + cells.length * cell;
    context.fillStyle = colour("muted");
    context.textAlign = "right";
    context.textBaseline = "middle";
    const step = Math.ceil(15 / cell);
    y.names.forEach((name, at) => { if (at % step === 0) context.fillText(name.length > 12 ? `${name.slice(0, 11)}…` : name, LEFT - 8, TOP + (at + 0.5) * cell); });
    context.textAlign = "center";
    const ticks = width < 480 ? 4 : 8, span = x.to - x.from;
    const raw = span / ticks, size = 10 ** Math.floor(Math.log10(raw)), every = [1, 2, 3, 5, 10].map((k) => k * size).find((k) => k >= raw) ?? raw;
    for (let at = x.from; at <= x.to + 1e-9 * span; at += every) context.fillText(show(at, 4), LEFT + (at - x.from) / span * (width - LEFT - RIGHT), low + 12);
    context.fillText([x.label, x.unit ? `(${x.unit})` : ""].filter(Boolean).join(" "), LEFT + (width - LEFT - RIGHT) / 2, low + 30);
    const begin = LEFT, bar = Math.min(140, (width - LEFT - RIGHT) * 0.28), top = low + BELOW + 2;
    for (let at = 0; at < bar; at += 1) { context.fillStyle = ramp(at / bar); context.fillRect(begin + at, top, 1.3, 10); }
    context.fillStyle = colour("muted");
    context.textAlign = "right";
    context.fillText("0", begin - 6, top + 5);
    context.textAlign = "left";
    context.fillText(`${show(most, 3)} ${value}`, begin + bar + 8, top + 5);
  }
}
