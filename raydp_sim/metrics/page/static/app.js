// Which page is shown follows from the address after #, so that a reload keeps the place.

import { Refused, login, logout } from "./api.js";
import { Compare } from "./compare.js";
import { h, replace } from "./dom.js";
import { List } from "./list.js";
import { link } from "./parts.js";
import { Run } from "./run.js";
import { start as startTheme } from "./theme.js";

const main = document.getElementById("main"), crumbs = document.getElementById("crumbs");
const leave = document.getElementById("leave"), status = document.getElementById("link");
let page = null, last = "";

const shell = {
  said(error) {
    if (error instanceof Refused) { signIn(); return; }
    status.textContent = error ? error.message : "";
  },
};

function parsed() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  return { parts, query: new URLSearchParams(query ?? "") };
}

function opened({ parts, query }) {
  const [kind, ...rest] = parts;
  if (kind === "run" && rest.length) {
    trail([["Runs", "#/"], [rest[0], link("run", rest[0])]]);
    return new Run(main, rest[0], rest[1], rest[2], shell);
  }
  if (kind === "compare" && rest.length > 1) {
    trail([["Runs", "#/"], ["Side by side", location.hash]]);
    return new Compare(main, rest, shell);
  }
  trail([]);
  return new List(main, query, shell);
}

function trail(places) {
  replace(crumbs, places.map(([name, href], at) => h("a", { href, text: name, "aria-current": at === places.length - 1 ? "page" : null })));
  document.title = places.length ? `${places[places.length - 1][0]} · raydp-sim` : "raydp-sim";
}

async function route() {
  const from = last;
  last = location.hash;
  keep(from);
  if (page instanceof Run && from && page.shows(parsed().parts)) { try { await page.load(); } catch (error) { shell.said(error); } return; }
  page?.destroy();
  status.textContent = "";
  replace(main, h("p", { class: "empty", text: "Loading" }));
  const place = parsed();
  try {
    const made = opened(place);
    page = made;
    await made.start();
    if (page !== made) return;
    leave.hidden = false;
    restore();
  } catch (error) {
    if (error instanceof Refused) { signIn(); return; }
    page?.destroy();
    page = null;
    status.textContent = "";
    replace(main, h("div", { class: "empty" }, h("p", { text: error.message }), h("p", {}, h("a", { href: "#/", text: "Back to the runs" }))));
  }
}

function signIn(wrong = false) {
  page?.destroy();
  page = null;
  leave.hidden = true;
  trail([]);
  status.textContent = "";
  const field = h("input", { type: "password", id: "token", name: "token", required: true, autocomplete: "current-password", spellcheck: "false" });
  const said = h("p", { class: "wrong", role: "alert", text: wrong ? "That token is not accepted." : "" });
  const form = h("form", { class: "card login", on: { submit: async (event) => {
    event.preventDefault();
    said.textContent = "";
    if (await login(field.value)) route();
    else { said.textContent = "That token is not accepted."; field.select(); }
  } } }, h("h1", { text: "Sign in" }), h("p", { class: "note" }, "The token was printed when this page was started, or is in the file it was started with."), h("label", { for: "token", text: "Token" }), field, said, h("button", { class: "button", type: "submit", text: "Open" }));
  replace(main, form);
  field.focus();
}

// Where one was on a page is kept for as long as the tab is open.

function keep(hash) {
  try { if (hash) sessionStorage.setItem(`at ${hash}`, String(scrollY)); } catch { /* nothing is kept */ }
}

function restore() {
  let at = 0;
  try { at = Number(sessionStorage.getItem(`at ${location.hash}`) ?? 0); } catch { /* nothing was kept */ }
  // Charts are as tall as they will be only after the browser has laid them out.
  requestAnimationFrame(() => requestAnimationFrame(() => scrollTo(0, at)));
}

history.scrollRestoration = "manual";
startTheme(document.getElementById("theme"));
leave.addEventListener("click", async () => { await logout(); signIn(); });
addEventListener("hashchange", () => { if (location.hash !== "#main") route(); });
addEventListener("pagehide", () => keep(location.hash));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
route();
