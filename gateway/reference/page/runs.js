// "Your runs": the latest runs of the account, the states of their jobs, and the open alerts.
import { element } from "./api.js";
import { attempt, onPress, read, write } from "./requests.js";
import { resultsOf } from "./results.js";

const states = ["completed", "running", "queued", "failed", "canceled"];
const severities = ["critical", "high", "medium", "low"];
const $ = (id) => document.getElementById(id);

let shown = []; // the runs of the list, each with a function that shows its current state
let next; // the timer of refresh
let message = ""; // of the latest button; an error of refresh is shown instead until it succeeds

function say(text) {
  message = text;
  showMessage(text);
}

// showMessage leaves the same text alone, because screen readers would read it again.
function showMessage(text) {
  if ($("runs-state").textContent !== text) $("runs-state").textContent = text;
}

export function showRuns() {
  $("key").addEventListener("input", () => { // perhaps of another account
    forget();
    say("");
  });
  onPress($("load"), () => attempt(say, load));
}

// forget hides the runs and no longer reads them.
function forget() {
  clearTimeout(next);
  shown = [];
  $("overview").hidden = true;
}

async function load() {
  say("Loading…");
  clearTimeout(next);
  await showAlerts();
  const runs = await read("/v1/runs", { limit: 20 }).catch((e) => { // last, as its error hides the alerts of another key too
    forget();
    throw e;
  });
  shown = runs.data.map(runItem);
  $("latest").replaceChildren(...shown.map((s) => s.item));
  showJobs();
  refreshLater();
  $("overview").hidden = false;
  say(runs.data.length ? `The latest ${plural(runs.data.length, "run")}${runs.has_more ? "; there are more" : ""}.` : "The account has no runs.");
}

const isOpen = (run) => run.finished_at === null;

// refreshLater reads the open runs again after 5 seconds, until there are none.
function refreshLater() {
  clearTimeout(next);
  if (shown.some((s) => isOpen(s.run))) next = setTimeout(refresh, 5000);
}

async function refresh() {
  try {
    if (!document.hidden) {
      show((await read("/v1/runs", { id: shown.filter((s) => isOpen(s.run)).map((s) => s.run.id).join() })).data);
      showMessage(message);
    }
  } catch (e) {
    showMessage(e.message);
  }
  refreshLater();
}

// show shows the current state of runs of the list.
function show(runs) {
  for (const run of runs) shown.find((s) => s.run.id === run.id)?.update(run);
  showJobs();
}

function showJobs() {
  const total = Object.fromEntries(states.map((s) => [s, shown.reduce((n, { run }) => n + run.jobs[s], 0)]));
  $("jobs").replaceChildren(bar(total, states, "jobs"), legend(total, states));
}

async function showAlerts() {
  try {
    const { data, has_more } = await read("/v1/alerts", { status: "open", limit: 200 });
    const count = Object.fromEntries(severities.map((s) => [s, data.filter((a) => a.severity === s).length]));
    $("alerts-by-severity").replaceChildren(bar(count, severities, "alerts"), legend(count, severities),
      ...(has_more ? [element("p", {}, `The latest ${data.length} alerts; there are more.`)] : []));
  } catch (e) {
    $("alerts-by-severity").replaceChildren(element("p", {}, e.message)); // the key may lack the scope
  }
}

// runItem returns an item of the list and a function that shows another state of its run.
function runItem(run) {
  const state = element("div"), results = resultsOf(run.id), cancel = cancelButton(run.id);
  const shown = { run, item: element("li", {}, state, element("div", { class: "actions" }, results, cancel)) };
  shown.update = (run) => {
    shown.run = run;
    state.replaceChildren(runHead(run), runSummary(run), bar(run.jobs, states, "jobs"), progress(run));
    if (!isOpen(run) && document.activeElement === cancel) results.querySelector("summary").focus();
    cancel.hidden = !isOpen(run);
  };
  shown.update(run);
  return shown;
}

// cancelButton cancels the run at its second press.
function cancelButton(id) {
  const button = element("button", { type: "button", class: "cancel", "aria-label": `Cancel ${id}` }, "Cancel");
  const ask = (sure) => {
    button.dataset.sure = sure;
    button.textContent = sure ? "Click again to cancel" : "Cancel";
    button.setAttribute("aria-label", `${button.textContent} ${id}`);
  };
  button.addEventListener("blur", () => ask(""));
  onPress(button, async () => {
    if (!button.dataset.sure) return ask("yes");
    try {
      show([await write(`/v1/runs/${id}/cancel`, {})]);
      say(`The run ${id} is canceled.`);
    } catch (e) {
      say(e.message);
    }
    ask("");
  });
  return button;
}

// progress says in words what the bar shows.
function progress({ jobs, total_jobs }) {
  const parts = states.filter((s) => jobs[s] > 0).map((s) => `${jobs[s]} ${s}`);
  return element("p", {}, element("span", {}, `${jobs.completed + jobs.failed + jobs.canceled} of ${plural(total_jobs, "job")} final: ${parts.join(", ")}`));
}

function runHead(run) {
  return element("p", {}, element("code", {}, run.id), element("strong", {}, run.status));
}

function runSummary(run) {
  return element("p", {},
    element("span", {}, `${plural(run.model_ids.length, "model")} × ${plural(run.question_ids.length, "question")} × ${run.repetitions} = ${plural(run.total_jobs, "job")}`),
    element("span", {}, `${run.locale} · ${run.measurement_type} · ${run.methodology_version}`),
    element("span", {}, element("time", { datetime: run.created_at }, dates.format(new Date(run.created_at)))));
}

const dates = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// bar draws the parts of a whole. Its label has the same numbers.
function bar(counts, names, what) {
  const shown = names.filter((n) => counts[n] > 0);
  const label = shown.length ? shown.map((n) => `${counts[n]} ${n}`).join(", ") : "none";
  const e = element("div", { class: "bar", role: "img", "aria-label": `${what}: ${label}`, title: label });
  for (const n of shown) {
    const part = element("i", { class: n });
    part.style.flexGrow = counts[n];
    e.append(part);
  }
  return e;
}

function legend(counts, names) {
  return element("ul", { class: "legend" }, ...names.map((n) => element("li", {}, element("i", { class: n }), `${n} ${counts[n]}`)));
}
