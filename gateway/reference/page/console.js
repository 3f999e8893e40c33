// The console: one request, edited by hand.
import { base, hasKey, read, send, setKey } from "./api.js";

const $ = (id) => document.getElementById(id);
const chosen = () => $("route").selectedOptions[0].dataset;

export function showConsole() {
  $("key").value = "";
  $("key").addEventListener("input", () => {
    setKey($("key").value);
    $("key-state").textContent = hasKey() ? "The key is in this page's memory." : "No key yet.";
  });
  $("key-shown").addEventListener("change", () => { $("key").type = $("key-shown").checked ? "text" : "password"; });
  $("route").addEventListener("change", choose);
  $("fresh").addEventListener("click", () => { freshKey(); tell(); });
  $("own").addEventListener("click", fillIn);
  $("request").addEventListener("input", tell);
  $("request").addEventListener("submit", (e) => { e.preventDefault(); perform(); });
  document.addEventListener("click", (e) => {
    const link = e.target.closest("[data-try]");
    if (!link) return;
    e.preventDefault(); // else the browser would take the focus away again
    location.hash = link.hash;
    $("route").value = link.dataset.try;
    choose();
    $(hasKey() ? "path" : "key").focus({ preventScroll: true });
  });
  choose();
}

function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  $("idempotency-key").value = [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
}

function choose() {
  const { method, path, body } = chosen();
  $("path").value = path;
  for (const e of document.querySelectorAll("#request .write")) e.hidden = method !== "POST";
  $("own").hidden = !(method === "POST" || $("route").value.includes("{id}"));
  if (method === "POST") {
    $("body").value = JSON.stringify(JSON.parse(body), null, 2);
    freshKey();
  }
  tell();
}

// compose makes the request that the fields describe. A body that is not JSON is sent as it is, to see what the API says.
function compose() {
  const { method } = chosen();
  const path = $("path").value.trim();
  const plain = $("form").value === "plain";
  if (method === "POST") {
    let body = $("body").value;
    if (!plain) body = `{"path":${JSON.stringify(path)},"method":"POST","body":${body}}`;
    return { method, address: plain ? path : "", body, headers: { "Content-Type": "application/json", "Idempotency-Key": $("idempotency-key").value } };
  }
  const [route, query] = [path.replace(/\?.*/s, ""), path.includes("?") ? path.slice(path.indexOf("?") + 1) : ""];
  return { method, address: plain ? path : "?path=" + route + (query && "&" + query) };
}

const quoted = (s) => "'" + s.replaceAll("'", `'\\''`) + "'";

// tell shows the request as a command. The key is not in it.
function tell() {
  const r = compose();
  const lines = ["curl -i " + quoted(location.origin + base + r.address), `-H "Authorization: Bearer $KEY"`];
  for (const [name, value] of Object.entries(r.headers ?? {})) lines.push("-H " + quoted(`${name}: ${value}`));
  if (r.body !== undefined) lines.push("-d " + quoted(r.body));
  $("curl").textContent = lines.join(" \\\n  ");
}

async function perform() {
  if (!hasKey()) {
    $("status").textContent = "Paste a key first.";
    $("key").focus();
    return;
  }
  $("status").textContent = "Sending…";
  try {
    const { response, text, value, took } = await send(compose());
    $("status").textContent = `${response.status} ${response.statusText} · ${took} ms`;
    $("headers").textContent = [...response.headers].map(([name, v]) => `${name}: ${v}`).join("\n");
    $("answer").textContent = value === null ? text : JSON.stringify(value, null, 2);
    $("answered").hidden = false;
    showWindow(response.headers);
  } catch (e) {
    $("status").textContent = "The request could not be sent: " + e.message;
  }
}

function showWindow(headers) {
  const [limit, left] = [Number(headers.get("X-RateLimit-Limit")), Number(headers.get("X-RateLimit-Remaining"))];
  document.querySelector(".window").hidden = !limit;
  if (!limit) return;
  Object.assign($("left"), { max: limit, low: limit / 5, high: limit / 2, optimum: limit, value: left });
  const seconds = /t=(\d+)/.exec(headers.get("RateLimit") ?? "")?.[1];
  $("left-text").textContent = `${left.toLocaleString("en")} of ${limit.toLocaleString("en")}; the next minute begins in ${seconds} s.`;
}

// fillIn puts ids that the account has in the place of the examples'.
async function fillIn() {
  if (!hasKey()) {
    $("status").textContent = "Paste a key first.";
    $("key").focus();
    return;
  }
  try {
    if (chosen().method !== "POST") {
      const { data } = await read("/v1/runs", { limit: 1 });
      if (!data.length) throw new Error("The account has no run yet.");
      $("path").value = "/v1/runs/" + data[0].id;
    } else {
      await fillRun();
    }
    $("status").textContent = "Filled in.";
  } catch (e) {
    $("status").textContent = e.message;
  }
  tell();
}

async function fillRun() {
  const questions = (await read("/v1/catalog/questions", { status: "active", limit: 1 })).data;
  if (!questions.length) throw new Error("The catalog has no active question.");
  const [{ id, language, country }] = questions;
  const covers = (list, v) => list === null || list.includes(v) || list.includes(v.replace(/-.*/, ""));
  const models = (await read("/v1/catalog/models", { status: "active", grounded_search: true, measurement_type: "grounded", limit: 200 })).data;
  const model = models.find((m) => covers(m.countries, country) && covers(m.languages, language));
  if (!model) throw new Error(`No available model covers the question ${id}.`);
  $("body").value = JSON.stringify({
    model_ids: [model.id], question_ids: [id], repetitions: 1, measurement_type: "grounded",
    locale: language.replace(/-.*/, "") + "-" + country, country, language,
  }, null, 2);
}
