// The account's latest runs: what has become of their jobs, and what alerts are open.
import { element, hasKey, read } from "./api.js";

const states = ["completed", "running", "queued", "failed", "canceled"];
const severities = ["critical", "high", "medium", "low"];
const $ = (id) => document.getElementById(id);

export function showRuns() {
  $("load").addEventListener("click", async () => {
    if (!hasKey()) {
      $("runs-state").textContent = "Paste a key into the console first.";
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
  let alerts = null, refused = "";
  try {
    alerts = await read("/v1/alerts", { status: "open", limit: 200 });
  } catch (e) {
    refused = e.message; // a key may lack that scope
  }
  const total = Object.fromEntries(states.map((s) => [s, runs.data.reduce((n, r) => n + r.jobs[s], 0)]));
  $("jobs").replaceChildren(bar(total, states, "jobs"), legend(total, states));
  if (alerts) {
    const count = Object.fromEntries(severities.map((s) => [s, alerts.data.filter((a) => a.severity === s).length]));
    $("alerts-by-severity").replaceChildren(bar(count, severities, "alerts"), legend(count, severities),
      ...(alerts.has_more ? [element("p", {}, `Of the latest ${alerts.data.length}; there are more.`)] : []));
  } else {
    $("alerts-by-severity").replaceChildren(element("p", {}, refused));
  }
  $("latest").replaceChildren(...runs.data.map(line));
  $("overview").hidden = false;
  $("runs-state").textContent = runs.data.length ? `The latest ${runs.data.length} runs${runs.has_more ? "; there are more" : ""}.` : "The account has no run yet.";
}

function line(r) {
  const head = element("p", {}, element("code", {}, r.id), element("strong", {}, r.status));
  const rest = element("p", {},
    element("span", {}, `${plural(r.model_ids.length, "model")} × ${plural(r.question_ids.length, "question")} × ${r.repetitions} = ${plural(r.total_jobs, "job")}`),
    element("span", {}, `${r.locale} · ${r.measurement_type} · ${r.methodology_version}`),
    element("span", {}, element("time", { datetime: r.created_at }, when.format(new Date(r.created_at)))));
  return element("li", {}, head, rest, bar(r.jobs, states, "jobs"));
}

const when = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// bar draws shares of a whole. What it shows is said in its label too.
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
