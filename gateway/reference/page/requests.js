// Requests of the panels, which show the text of a problem.
import { hasKey, key, once, send } from "./api.js";

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

// onPress calls f when the button is pressed, but not again before f has ended. Unlike a disabled button, it keeps the focus.
export function onPress(button, f) {
  button.addEventListener("click", () => once(button, f));
}
