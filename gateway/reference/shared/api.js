// Requests with the key that was entered. The key is kept in this module's memory and in its input field only.
export let key = "";

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

// element creates an element whose content is text or other elements.
export function element(name, attributes = {}, ...content) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...content);
  return e;
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
