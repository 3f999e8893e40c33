// "Your runs": the latest runs of the account, the states of their jobs, and the open alerts.
import { element, hasKey, read } from "./api.js";

const states = ["completed", "running", "queued", "failed", "canceled"];
const severities = ["critical", "high", "medium", "low"];
const $ = (id) => document.getElementById(id);

export function showRuns() {
  $("load").addEventListener("click", async () => {
    if (!hasKey()) {
      $("runs-state").textContent = "Enter an API key in the console first.";
      $("key").focus();
      return;
    }
    $("load").disabled = true;
    $("runs-state").textContent = "Loading…";
    try {
      await load();
    } catch (e) {
      $("runs-state").textContent = e.message;
      $("overview").hidden = true;
    }
    $("load").disabled = false;
  });
}

async function load() {
  const runs = await read("/v1/runs", { limit: 20 });
  showJobs(runs.data);
  await showAlerts();
  $("latest").replaceChildren(...runs.data.map(runItem));
  $("overview").hidden = false;
  $("runs-state").textContent = runs.data.length ? `The latest ${plural(runs.data.length, "run")}${runs.has_more ? "; there are more" : ""}.` : "The account has no run.";
}

function showJobs(runs) {
  const total = Object.fromEntries(states.map((s) => [s, runs.reduce((n, r) => n + r.jobs[s], 0)]));
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

function runItem(run) {
  return element("li", {}, runHead(run), runSummary(run), bar(run.jobs, states, "jobs"));
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
