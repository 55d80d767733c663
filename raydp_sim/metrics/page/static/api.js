// Asking the server. Whoever has no token, or one that is no longer good, is shown the login.

export class Refused extends Error {}

const query = (given) => new URLSearchParams(given).toString();

export function address(what, given = {}) {
  const said = Array.isArray(given) || Object.keys(given).length ? `?${query(given)}` : "";
  return `api/${what}${said}`;
}

export async function ask(what, given = {}) {
  const answer = await fetch(address(what, given), { credentials: "same-origin", cache: "no-store" });
  if (answer.status === 401) throw new Refused("a valid token is needed");
  if (!answer.ok) throw new Error(answer.status === 404 ? "There is no such run, or it is not open to this token." : answer.status === 500 ? "This run cannot be read: its directory may be damaged." : `The server said ${answer.status}.`);
  return answer.json();
}

async function post(what, body) {
  return fetch(`api/${what}`, {
    method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
}

export async function login(token) {
  return (await post("login", { token })).ok;
}

export async function logout() {
  await post("logout", {});
}

// Calls `act` when there is news, one call at a time and never so often that the server has no rest:
// where an answer takes long, the next one waits for longer. The last news of a run does not wait.
export function follow(given, act, said) {
  const source = new EventSource(address("events", given));
  let busy = false, again = false, last = false, open = true, timer = 0, failed = 0;
  const turn = async () => {
    if (!open) return;
    if (busy || (timer && !last)) { again = true; return; }
    clearTimeout(timer);
    timer = 0;
    busy = true;
    const began = performance.now();
    try { await act(); } catch (error) { said(error); }
    busy = false;
    if (!open) return;
    if (again && last) { again = false; turn(); return; }
    timer = setTimeout(() => { timer = 0; if (again) { again = false; turn(); } }, Math.max(1000, 4 * (performance.now() - began)));
  };
  source.addEventListener("news", (event) => {
    const { state } = JSON.parse(event.data);
    last = state !== null && state !== "live";
    turn();
  });
  source.addEventListener("open", () => { failed = 0; said(null); });
  source.addEventListener("error", () => {
    failed += 1;
    // Refused, not out of reach: asking says why, such as that the token is no longer good.
    if (open && source.readyState === EventSource.CLOSED) act().then(() => said(new Error("no longer live: reload the page")), said);
    else if (open) said(new Error(failed > 2 ? "the server has ended; this is what it showed last" : "waiting for the server"));
  });
  source.addEventListener("end", () => { said(null); source.close(); });
  return () => { open = false; source.close(); clearTimeout(timer); };
}
