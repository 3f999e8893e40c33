// The console: one request, edited by hand.
import { base, element, hasKey, send, setKey } from "./api.js";
import { attempt, read } from "./requests.js";

const $ = (id) => document.getElementById(id);
const say = (text) => { $("status").textContent = text; };
const chosen = () => $("route").selectedOptions[0].dataset;

export function showConsole() {
  $("key").value = "";
  $("key").addEventListener("input", () => {
    setKey($("key").value);
    $("key-state").textContent = hasKey() ? "The key is in the memory of this page." : "No key entered.";
  });
  $("key-shown").addEventListener("change", () => { $("key").type = $("key-shown").checked ? "text" : "password"; });
  $("route").addEventListener("change", selectRoute);
  $("fresh").addEventListener("click", () => { newIdempotencyKey(); showCurl(); });
  $("own").addEventListener("click", () => attempt(say, useOwnIds));
  $("request").addEventListener("input", showCurl);
  $("request").addEventListener("submit", (e) => { e.preventDefault(); attempt(say, perform); });
  document.addEventListener("click", (e) => {
    const link = e.target.closest("[data-try]");
    if (!link) return;
    e.preventDefault(); // otherwise following the link would move the focus
    location.hash = link.hash;
    $("route").value = link.dataset.try;
    selectRoute();
    $(hasKey() ? "path" : "key").focus({ preventScroll: true });
  });
  selectRoute();
}

function newIdempotencyKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  $("idempotency-key").value = [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
}

// selectRoute fills the fields with the example of the selected route.
function selectRoute() {
  const { method, path, body, keyed, types } = chosen(); // types: of the response, if there are several; the first is the default
  $("path").value = path;
  for (const e of document.querySelectorAll("#request .write")) e.hidden = method === "GET";
  for (const e of document.querySelectorAll("#request .keyed")) e.hidden = keyed === undefined;
  document.querySelector("#request .types").hidden = !types;
  $("accept").replaceChildren(...(types ?? "").split(" ").map((t) => element("option", {}, t)));
  $("own").hidden = !ownIds();
  $("body").value = body ? JSON.stringify(JSON.parse(body), null, 2) : "{}";
  if (keyed !== undefined) newIdempotencyKey();
  showCurl();
}

// compose returns the request of the fields. A body that is not JSON is sent unchanged, so that the API reports the error.
function compose() {
  const { method, keyed, types } = chosen();
  const path = $("path").value.trim();
  const plain = $("form").value === "plain";
  if (method === "GET") {
    const mark = path.indexOf("?");
    const [route, query] = mark < 0 ? [path, ""] : [path.slice(0, mark), "&" + path.slice(mark + 1)];
    const headers = types && $("accept").selectedIndex > 0 ? { Accept: $("accept").value } : {};
    return { method, address: plain ? path : "?path=" + route + query, headers };
  }
  const headers = { "Content-Type": "application/json" };
  if (keyed !== undefined) headers["Idempotency-Key"] = $("idempotency-key").value;
  const body = $("body").value;
  if (plain) return { method, address: path, headers, body };
  return { method: "POST", address: "", headers, body: `{"path":${JSON.stringify(path)},"method":"${method}","body":${body}}` };
}

const quoted = (s) => "'" + s.replaceAll("'", `'\\''`) + "'";

// showCurl shows the request as a command, without the key.
function showCurl() {
  const r = compose();
  const method = r.method === "GET" || r.method === "POST" ? "" : `-X ${r.method} `;
  const lines = [`curl -i ${method}` + quoted(location.origin + base + r.address), `-H "Authorization: Bearer $KEY"`];
  for (const [name, value] of Object.entries(r.headers)) lines.push("-H " + quoted(`${name}: ${value}`));
  if (r.body !== undefined) lines.push("-d " + quoted(r.body));
  $("curl").textContent = lines.join(" \\\n  ");
}

async function perform() {
  say("Sending…");
  showResponse(await send(compose()).catch((e) => { throw new Error("The request could not be sent: " + e.message); }));
}

function showResponse({ response, text, value, took }) {
  say(`${response.status} ${response.statusText} · ${took} ms`);
  $("headers").textContent = [...response.headers].map(([name, v]) => `${name}: ${v}`).join("\n");
  $("answer").textContent = value === null ? text : JSON.stringify(value, null, 2);
  $("answered").hidden = false;
  showRateLimit(response.headers);
}

function showRateLimit(headers) {
  const [limit, left] = [Number(headers.get("X-RateLimit-Limit")), Number(headers.get("X-RateLimit-Remaining"))];
  document.querySelector(".window").hidden = !limit;
  if (!limit) return;
  Object.assign($("left"), { max: limit, low: limit / 5, high: limit / 2, optimum: limit, value: left });
  const seconds = /t=(\d+)/.exec(headers.get("RateLimit") ?? "")?.[1];
  $("left-text").textContent = `${left.toLocaleString("en")} of ${limit.toLocaleString("en")}; the next minute starts in ${seconds} s.`;
}

// ownIds returns the function that replaces the ids of the example by ids of the account, if the route has one.
function ownIds() {
  if ($("route").value === "POST /v1/runs") return fillBody;
  if ($("route").value.includes("/v1/runs/{id}")) return fillRunId;
  return null;
}

async function useOwnIds() {
  await ownIds()();
  showCurl();
  say("Ids filled in.");
}

async function fillRunId() {
  const { data } = await read("/v1/runs", { limit: 1 });
  if (!data.length) throw new Error("The account has no runs.");
  $("path").value = $("path").value.replace(/^\/v1\/runs\/[^/?]*/, "/v1/runs/" + data[0].id);
}

async function fillBody() {
  const questions = (await read("/v1/catalog/questions", { status: "active", limit: 1 })).data;
  if (!questions.length) throw new Error("The catalog has no active questions.");
  const [{ id, language, country }] = questions;
  const covers = (list, v) => list === null || list.includes(v) || list.includes(v.replace(/-.*/, ""));
  const models = (await read("/v1/catalog/models", { status: "active", grounded_search: true, measurement_type: "grounded", limit: 200 })).data;
  const model = models.find((m) => covers(m.countries, country) && covers(m.languages, language));
  if (!model) throw new Error(`No available model supports the question ${id}.`);
  $("body").value = JSON.stringify({
    model_ids: [model.id], question_ids: [id], repetitions: 1, measurement_type: "grounded",
    locale: language.replace(/-.*/, "") + "-" + country, country, language,
  }, null, 2);
}
