// The controls, the requests and the states of the sections. Texts of responses are inserted as text, never as HTML.
import { base, element, hasKey, once, send, setKey } from "../docs/api.js";
import * as show from "./sections.js";

// dropKey removes a key from the address.
const dropKey = () => { if (`${new URLSearchParams(location.hash)}`.includes("aiv_live_")) history.replaceState(null, "", location.pathname); };
dropKey();
const $ = (id) => document.getElementById(id);
document.body.classList.add("scripted");

const filters = ["model_id", "topic", "country", "branded"];
const sections = { // their requests, and how they are drawn
  brands: { needs: ["totals", "change"], draw: show.brands },
  "by-model": { needs: ["totals", "byModel"], draw: show.byModel },
  "over-time": { needs: ["totals", "overTime"], draw: show.overTime },
  share: { needs: ["totals"], draw: show.share },
  sources: { needs: ["sources"], draw: show.sources },
  alerts: { needs: ["alerts"], draw: show.alerts },
};

let turn = null; // the current load: its period and addresses, the responses and problems, and a promise that rejects when it ends early
let catalogs = null; // of the key: names of models, and whether the selects are filled

// Controls.

const today = () => new Date().toISOString().slice(0, 10);

// setWeeks sets the dates to whole weeks that end with the current one.
function setWeeks(n) {
  const monday = show.addDays(today(), -((new Date(`${today()}T00:00:00Z`).getUTCDay() + 6) % 7));
  $("from").value = show.addDays(monday, -7 * (n - 1));
  $("to").value = show.addDays(monday, 7);
}

const probe = element("input", { type: "date" }); // keeps valid dates only
const isDate = (v) => (probe.value = v) === probe.value && v !== "";
const valid = { model_id: /^[\w.:/-]{1,128}$/, topic: /^[^\0]{1,128}$/u, country: /^[A-Z]{2}$/, branded: /^(true|false)$/ };

// select chooses a value of a filter, which may not be in the catalogs.
function select(id, value) {
  const field = $(id);
  if (![...field.options].some((o) => o.value === value)) field.append(element("option", { value }, value));
  field.value = value;
}

function readFragment() {
  dropKey();
  const p = new URLSearchParams(location.hash.slice(1));
  const weeks = p.get("weeks"), from = p.get("from") ?? "", to = p.get("to") ?? "";
  if (isDate(from) && isDate(to) && from < to) {
    [$("weeks").value, $("from").value, $("to").value] = ["custom", from, to];
  } else {
    $("weeks").value = ["4", "12", "26", "52"].includes(weeks) ? weeks : "12";
    setWeeks(Number($("weeks").value));
  }
  for (const id of filters) {
    const v = p.get(id);
    select(id, v !== null && valid[id].test(v) ? v : "");
  }
}

function writeFragment() {
  const p = new URLSearchParams();
  if ($("weeks").value === "custom") { p.set("from", $("from").value); p.set("to", $("to").value); } else p.set("weeks", $("weeks").value);
  for (const id of filters) if ($(id).value) p.set(id, $(id).value);
  history.replaceState(null, "", `#${p}`);
}

const wide = matchMedia("(width >= 640px)");
const fold = () => { $("filters").open = wide.matches; };
wide.addEventListener("change", fold);
fold();
readFragment();
addEventListener("hashchange", readFragment);
$("controls").addEventListener("change", (e) => {
  if (e.target.id === "weeks" && e.target.value !== "custom") setWeeks(Number(e.target.value));
  if (e.target.id === "from" || e.target.id === "to") $("weeks").value = "custom";
  if (e.target.id !== "key" && e.target.id !== "key-shown") writeFragment();
});
$("key-shown").addEventListener("change", (e) => { $("key").type = e.target.checked ? "text" : "password"; });
$("key").addEventListener("input", () => { // perhaps of another account
  setKey($("key").value);
  forget();
});
addEventListener("pagehide", () => {
  $("key").value = "";
  setKey("");
  forget();
});
$("controls").addEventListener("keydown", (e) => { // a browser would open the list
  if (e.key !== "Enter" || e.target.tagName !== "SELECT") return;
  e.preventDefault();
  $("load").click();
});
$("controls").addEventListener("submit", (e) => {
  e.preventDefault();
  once($("load"), load);
});
$("gap").addEventListener("change", () => {
  if (turn?.scopes) run(turn, ["sources"]);
});
$("cancel").addEventListener("click", () => turn?.cancel());
document.querySelector(".skip").addEventListener("click", (e) => { // the fragment has the filters
  e.preventDefault();
  $("content").focus();
});

const say = (text) => { if ($("status").textContent !== text) $("status").textContent = text; };

function keyState(text = "The key stays in the memory of this page.", invalid = false) {
  $("key-state").textContent = text;
  $("key").ariaInvalid = invalid || null;
}

// forget drops the figures and the responses that are still to come.
function forget() {
  turn?.stop();
  turn = catalogs = null;
  keyState();
  say("");
  hideHeader();
  fillSelects({});
  for (const id in sections) setState(id, "idle", "Enter an API key and press Load.");
}

function hideHeader() {
  for (const id of ["scope", "totals", "notes"]) {
    $(id).replaceChildren();
    $(id).hidden = true;
  }
}

// States of sections.

// setState shows the text of a state. The figures stay while new ones are loaded.
function setState(id, state, ...text) {
  const section = $(id);
  section.dataset.state = state;
  section.ariaBusy = state === "loading";
  const words = section.querySelector(".state"), focused = words.contains(document.activeElement);
  words.replaceChildren(...text);
  if (focused) focusHeading(section);
  if (state === "loading" || state === "ready") return;
  replace(section.querySelector(".body"));
  drawn.delete(id);
}

const loading = (id) => setState(id, "loading", ...($(id).querySelector(".body").childElementCount ? [] : ["Loading…"]));

function focusHeading(section) {
  const heading = section.querySelector("h2");
  heading.tabIndex = -1;
  heading.focus();
}

// replace replaces the content of a section; the focus moves to the element in the same position, or to the heading.
function replace(body, ...content) {
  const targets = () => [...body.querySelectorAll("a, button, summary")];
  const at = targets().indexOf(document.activeElement), open = body.querySelector("details")?.open;
  body.replaceChildren(...content);
  if (open && body.querySelector("details")) body.querySelector("details").open = true;
  if (at < 0) return;
  const next = targets()[Math.min(at, targets().length - 1)];
  if (next) next.focus(); else focusHeading(body.closest("section"));
}

const drawn = new Map(); // section id: the function that draws its figure, and the width that it was drawn for
const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) if (target.isConnected) drawFigure(target.closest("section").id); else observer.unobserve(target);
});

function drawFigure(id) {
  const d = drawn.get(id), box = $(id).querySelector(".figure");
  if (!d || !box) return;
  const width = Math.floor(box.getBoundingClientRect().width);
  if (width > 0 && width !== d.width) {
    d.width = width;
    box.replaceChildren(d.figure(width));
  }
}

const again = (text, f) => {
  const button = element("button", { type: "button" }, text);
  button.addEventListener("click", () => once(button, f));
  return button;
};

// draw shows a section whose responses have arrived.
function draw(id) {
  const t = turn, { needs, draw } = sections[id];
  // The names of brands and models come with two other responses.
  if (!t || needs.some((n) => !t.settled.has(n)) || ["totals", "models"].some((n) => n in t.latest && !t.settled.has(n))) return;
  const problem = needs.map((n) => t.problems[n]).find(Boolean);
  if (problem) return setState(id, "problem", ...problemText(problem, () => run(t, needs.filter((n) => t.problems[n]))));
  const measured = needs.includes("totals");
  const noBrands = measured && t.totals.data.length === 0;
  const noAnswers = measured && t.totals.answers.ok === 0;
  const clear = filters.some((f) => t.filters[f]) ? [" ", again("Clear filters", () => {
    for (const f of filters) $(f).value = "";
    writeFragment();
    $("load").focus();
    turn.stop(); // a load that still runs
    turn = null;
    setTimeout(() => once($("load"), load));
  })] : [];
  if (noBrands && id !== "brands") return setState(id, "empty", "The account has no brands.");
  if (noAnswers && !noBrands) return setState(id, "empty", "No answers in this period.", ...clear);
  const content = draw({ ...t, names: catalogs?.names ?? new Map(), brandNames: new Map(t.totals?.data.map((b) => [b.brand_id, b.brand_name])) });
  if (content.empty) return setState(id, "empty", ...content.empty, ...(noBrands ? [] : clear));
  const body = $(id).querySelector(".body");
  const figure = content.figure ? [element("div", { class: "figure" })] : [];
  const more = content.more ? [again("More", () => run(t, ["sources"], content.more))] : [];
  const addresses = needs.flatMap((n) => t.addresses[n]).filter(Boolean);
  replace(body, ...figure, ...(content.body ?? []), ...more, ...(content.left ? [element("p", { class: "left" }, content.left)] : []),
    ...(content.table ? [element("details", { class: "data" }, element("summary", {}, "Table"), content.table)] : []),
    element("p", { class: "request" }, ...addresses.flatMap((a) => [element("code", {}, `GET ${a}`), " "])));
  setState(id, "ready");
  drawn.delete(id);
  if (content.figure) {
    drawn.set(id, { figure: content.figure, width: 0 });
    drawFigure(id);
    observer.observe(body.querySelector(".figure"));
  }
}

// problemText shows a problem with its faults and a link to its description.
function problemText({ value, text }, retry) {
  if (!value?.code) return [text, " ", again("Try again", retry)];
  const faults = (value.errors ?? []).map((e) => `${e.parameter ?? e.pointer}: ${e.detail}.`);
  return [[`${value.title}.`, value.detail, ...faults].join(" "), " ", element("a", { href: `${base}/docs#${encodeURIComponent(value.code)}` }, element("code", {}, value.code)),
    " ", element("code", {}, value.request_id ?? "")];
}

// Requests.

// newTurn returns what a load needs. race returns a promise that also ends when the load does.
function newTurn() {
  const from = $("from").value, to = $("to").value, n = show.days(from, to);
  const t = { period: { from, to, middle: show.addDays(from, Math.floor(n / 2)) }, filters: Object.fromEntries(filters.map((f) => [f, $(f).value])),
    unit: n <= 31 ? "day" : n <= 400 ? "week" : "month", settled: new Set(), latest: {}, problems: {}, addresses: {}, done: 0, asked: 0 };
  let end;
  const ended = new Promise((_, reject) => { end = reject; });
  ended.catch(() => {}); // it may have no request to end
  t.stop = () => end(new Error("stopped"));
  t.race = (p) => Promise.race([p, ended]);
  const q = new URLSearchParams({ from, to });
  for (const f of filters) if (t.filters[f]) q.set(f, t.filters[f]);
  const halves = new URLSearchParams(q);
  halves.set("from", t.period.middle);
  halves.set("baseline_from", from);
  halves.set("baseline_to", t.period.middle);
  t.changeNote = "– the period has one day";
  t.requests = {
    totals: () => `/v1/metrics?${q}`,
    change: () => n < 2 ? null : `/v1/metrics/compare?${halves}`,
    byModel: () => `/v1/metrics?${q}&group_by=model`,
    overTime: () => `/v1/metrics?${q}&group_by=${t.unit}`,
    sources: (cursor) => `/v1/sources?${q}&limit=20${$("gap").checked ? "&gap=true" : ""}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`,
    alerts: () => "/v1/alerts?status=open&limit=20",
    models: () => "/v1/catalog/models?limit=200",
    questions: () => "/v1/catalog/questions?limit=200",
  };
  return t;
}

// get returns the response to a request. If the server asks to wait, it waits and repeats the request once.
async function get(t, address) {
  for (let repeated = false; ; repeated = true) {
    let answer;
    try {
      answer = await t.race(send({ method: "GET", address }));
    } catch (e) {
      if (e.message === "stopped" || e instanceof TypeError) throw e;
      throw { text: "The server cannot be reached." };
    }
    const { response, value } = answer;
    if (response.ok && value) return answer;
    const seconds = Number(response.headers.get("Retry-After"));
    if (repeated || ![429, 503].includes(response.status) || !(seconds > 0)) {
      throw { status: response.status, value, text: `The server returned ${response.status}.` };
    }
    await pause(t, seconds, response.status === 429 ? "The limit of this minute is used." : "The service is busy.");
  }
}

// pause waits, together with other requests that wait and until the latest of their times, and shows a countdown.
function pause(t, seconds, reason) {
  t.pauseEnd = Math.max(t.pauseEnd ?? 0, Date.now() + seconds * 1000);
  t.pausing ??= t.race(new Promise((resolve, reject) => {
    const box = $("waiting");
    const finish = (f, v) => {
      clearInterval(timer);
      if (box.contains(document.activeElement)) $("load").focus();
      box.hidden = true;
      t.pausing = null;
      f(v);
    };
    const tick = () => {
      const left = Math.ceil((t.pauseEnd - Date.now()) / 1000);
      if (left <= 0 || turn !== t) return finish(resolve);
      box.firstElementChild.textContent = `${reason} Continues in ${left} s.`;
    };
    const timer = setInterval(tick, 250);
    t.cancel = () => finish(reject, { text: "Canceled." });
    say(`${reason} Waiting.`);
    box.hidden = false;
    tick();
  }));
  return t.pausing;
}

// run sends requests, at most four at a time, and draws the sections that they complete.
async function run(t, names, cursor = null) {
  if (turn !== t) return;
  const queue = [...names];
  t.asked += queue.length;
  for (const id in sections) if (sections[id].needs.some((n) => names.includes(n))) loading(id);
  const order = {}, isLatest = (name) => t.latest[name] === order; // else it was sent again
  for (const n of names) { t.settled.delete(n); delete t.problems[n]; t.latest[n] = order; }
  const worker = async () => {
    for (let name = queue.shift(); name; name = queue.shift()) {
      const address = t.requests[name](cursor);
      try {
        const value = address === null ? null : (await get(t, address)).value;
        if (turn !== t) return;
        if (isLatest(name)) {
          (cursor ? t.addresses[name] : t.addresses[name] = []).push(address);
          t[name] = name !== "sources" ? value : cursor ? [...t.sources, value] : [value];
        }
      } catch (e) {
        if (turn !== t) return;
        if (e instanceof Error && e.message !== "stopped") throw e;
        if (e.status === 401) return refuse(t, e);
        if (isLatest(name)) t.problems[name] = e;
      }
      if (isLatest(name)) t.settled.add(name);
      if (++t.done < t.asked) say(`Loading, ${t.done} of ${t.asked}`); else performance.mark("aiv-report-loaded");
      if (name === "models" && !t.problems.models) catalogs.names = new Map(t.models.data.map((m) => [m.id, m.name]));
      if (name === "totals") showHeader(t);
      for (const id in sections) if ($(id).dataset.state === "loading") draw(id);
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
  if (turn !== t || t.done < t.asked) return;
  performance.measure("aiv-report-render", "aiv-report-loaded");
  const { totals, problems } = t, failed = Object.keys(problems).length;
  say((totals ? `${show.plural(totals.answers.ok, "answer")}, ${show.plural(totals.data.length, "brand")}.` : "")
    + (failed ? ` ${show.plural(failed, "request")} failed.` : ""));
}

async function load() {
  if (!hasKey()) {
    keyState("Enter an API key first.");
    $("key").focus();
    return;
  }
  if ($("from").value === "" || $("to").value === "" || $("from").value >= $("to").value) {
    say("The period must end after it begins.");
    $("to").focus();
    return;
  }
  turn?.stop();
  const t = turn = newTurn(), first = catalogs === null;
  keyState();
  say("Loading");
  Object.keys(sections).forEach(loading);
  try {
    const me = await get(t, "/v1/me");
    t.scopes = me.value.credential.scopes;
    await enough(t, me.response, 9);
  } catch (e) {
    if (turn === t) refuse(t, e);
    return;
  }
  if (turn !== t) return;
  catalogs ??= { names: new Map() };
  showHeader(t);
  const names = [...(first ? ["models", "questions"] : []), "totals", "byModel", "overTime", "change", "sources"];
  if (t.scopes.includes("alerts:read")) names.push("alerts");
  else setState("alerts", "empty", "The key needs the scope ", element("code", {}, "alerts:read"), ".");
  await run(t, names);
  if (turn !== t) return;
  if (first) fillSelects(t);
  showHeader(t); // with the names of models
  if (t.problems.models || t.problems.questions) catalogs = null; // the next load asks again
}

// refuse shows why a load did not begin, or ended: the key is not valid, or the server is not there.
function refuse(t, e) {
  if (e.status === 401 || e instanceof TypeError) {
    forget();
    keyState(e.value?.detail ?? "The key is not valid.", true);
    $("key").focus();
    return;
  }
  turn = null;
  const text = e.text ?? e.message;
  say(e.value?.title ?? text);
  hideHeader();
  for (const id in sections) setState(id, "problem", ...problemText({ text, value: e.value }, () => once($("load"), load)));
}

// enough waits for the next minute if fewer requests than needed remain in this one.
async function enough(t, response, needed) {
  const [limit, remaining] = ["Limit", "Remaining"].map((n) => Number(response.headers.get(`X-RateLimit-${n}`)));
  const [, left] = /;t=(\d+)/.exec(response.headers.get("RateLimit")) ?? [];
  if (left && remaining < needed && limit > needed) await pause(t, Number(left), "The limit of this minute is nearly used.");
}

// fillSelects offers the values of the catalogs, and keeps the values that are chosen.
function fillSelects(t) {
  const values = (of) => [...new Set((t.questions?.data ?? []).map((q) => q[of]))].sort().map((v) => [v, v]);
  const options = {
    model_id: (t.models?.data ?? []).map((m) => [m.id, m.name]),
    topic: values("topic"),
    country: values("country"),
  };
  for (const [id, values] of Object.entries(options)) {
    const chosen = $(id).value;
    $(id).replaceChildren(element("option", { value: "" }, "All"), ...values.map(([value, name]) => element("option", { value }, name)));
    select(id, chosen);
  }
}

// showHeader shows the period and the filters of a load, and its totals when they have arrived.
function showHeader(t) {
  const name = (f) => [...$(f).options].find((o) => o.value === t.filters[f])?.text ?? t.filters[f];
  const chosen = filters.filter((f) => t.filters[f]).map((f) => `${$(f).labels[0].textContent}: ${name(f)}`);
  $("scope").textContent = [`${show.dayOf(t.period.from)} to ${show.dayOf(show.addDays(t.period.to, -1))}`, ...chosen].join(" · ");
  $("scope").hidden = false;
  $("totals").hidden = $("notes").hidden = true;
  if (!t.totals) return;
  const { answers, questions, as_of } = t.totals;
  $("totals").textContent = `${show.plural(answers.ok, "answer")} to ${show.plural(questions, "question")} by ${show.atLeast(t.totals)}${show.plural(show.modelsOf(t.totals).length, "model")} · as of ${show.timeOf(as_of)}`;
  const notes = show.notes(t.totals, catalogs?.names ?? new Map());
  $("notes").replaceChildren(...notes.map((n) => element("li", {}, n)));
  $("notes").hidden = notes.length === 0;
  $("totals").hidden = false;
}

forget();
