// Light, dark, or as the system has it. Charts are drawn on canvases and ask here for colours.

const KEY = "raydp-sim-theme";
const ORDER = ["system", "light", "dark"];
const listeners = new Set();
const dark = matchMedia("(prefers-color-scheme: dark)");

function stored() {
  try { return localStorage.getItem(KEY) ?? "system"; } catch { return "system"; }
}

let chosen = ORDER.includes(stored()) ? stored() : "system";

function apply() {
  document.documentElement.dataset.theme = chosen === "system" ? (dark.matches ? "dark" : "light") : chosen;
  for (const each of listeners) each();
}

export function start(button) {
  const label = () => {
    button.textContent = { system: "◐ Auto", light: "○ Light", dark: "● Dark" }[chosen];
    button.setAttribute("aria-label", `Theme: ${chosen}. Change it.`);
  };
  dark.addEventListener("change", apply);
  button.addEventListener("click", () => {
    chosen = ORDER[(ORDER.indexOf(chosen) + 1) % ORDER.length];
    try { localStorage.setItem(KEY, chosen); } catch { /* a browser that keeps nothing */ }
    label();
    apply();
  });
  label();
  apply();
}

export function onTheme(act) {
  listeners.add(act);
  return () => listeners.delete(act);
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const series = (number) => (number < 0 ? colour("text") : colour(`c${number % 8}`));

export function faint(hex, share) {
  const value = parseInt(hex.slice(1), 16);
  return `rgba(${value >> 16}, ${(value >> 8) & 255}, ${value & 255}, ${share})`;
}
