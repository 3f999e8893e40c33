// Requests with the key that was entered. The key is kept in this module's memory and in its input field only.
let key = "";

export const base = document.body.dataset.base;
export const setKey = (k) => { key = k.trim(); };
export const hasKey = () => key !== "";

// send sends a request and returns the response, decoded if it is JSON.
export async function send({ method, address, headers = {}, body }) {
  const request = new Request(base + address, { // throws if a header is invalid
    method, body, headers: { ...headers, Authorization: "Bearer " + key }, credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer",
  });
  const start = performance.now();
  let response, text;
  try {
    response = await fetch(request);
    text = await response.text();
  } catch {
    throw new Error("The server cannot be reached; try again."); // the texts of browsers differ
  }
  let value = null;
  try { value = JSON.parse(text); } catch { /* no body, or the page of a proxy */ }
  return { response, text, value, took: Math.round(performance.now() - start) };
}

// read returns the body of a GET request. It throws an error with the text of the problem, and if another key was entered
// since, because the body may be another account's.
export async function read(path, parameters = {}) {
  const used = key;
  const body = accepted(await send({ method: "GET", address: "?" + new URLSearchParams({ path, ...parameters }) }));
  if (key !== used) throw new Error("The key was changed; try again.");
  return body;
}

// write returns the body of a POST request, and throws errors as read does.
export async function write(path, body) {
  return accepted(await send({
    method: "POST", address: "", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ path, method: "POST", body }),
  }));
}

function accepted({ response, value }) {
  if (!response.ok) throw new Error(value?.detail ? problemText(value) : `The server returned ${response.status}.`);
  return value;
}

function problemText({ title, detail, errors = [] }) {
  return [`${title}.`, detail, ...errors.map((e) => `${e.pointer ?? e.parameter}: ${e.detail}.`)].join(" ");
}

// attempt calls f if a key was entered, and says its error.
export async function attempt(say, f) {
  if (!hasKey()) {
    say("Enter an API key in the console first.");
    document.getElementById("key").focus();
    return;
  }
  try {
    await f();
  } catch (e) {
    say(e.message);
  }
}

// element creates an element whose content is text or other elements.
export function element(name, attributes = {}, ...content) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...content);
  return e;
}

// onPress calls f when the button is pressed, but not again before f has ended. Unlike a disabled button, it keeps the focus.
export function onPress(button, f) {
  button.addEventListener("click", () => once(button, f));
}

// once calls f, which button starts, unless it is running.
export async function once(button, f) {
  if (button.ariaDisabled === "true") return;
  button.ariaDisabled = "true";
  try {
    await f();
  } finally {
    button.ariaDisabled = "false";
  }
}
