// Requests with the key that was pasted. The key lives in this module's memory and in the field it was pasted into.
let key = "";

export const base = document.body.dataset.base;
export const setKey = (k) => { key = k.trim(); };
export const hasKey = () => key !== "";

// send sends a request and returns its answer, decoded where it is JSON.
export async function send({ method, address, headers = {}, body }) {
  const began = performance.now();
  const response = await fetch(base + address, {
    method, body, headers: { ...headers, Authorization: "Bearer " + key }, credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer",
  });
  const text = await response.text();
  let value = null;
  try { value = JSON.parse(text); } catch { /* a HEAD, or a proxy's page */ }
  return { response, text, value, took: Math.round(performance.now() - began) };
}

// read reads a route; a problem is thrown, in words for people.
export async function read(path, parameters = {}) {
  const { response, value } = await send({ method: "GET", address: "?" + new URLSearchParams({ path, ...parameters }) });
  if (!response.ok) throw new Error(value?.detail ? `${value.title}. ${value.detail}` : `The server answered ${response.status}.`);
  return value;
}

// element makes an element; what is in it is text or elements.
export function element(name, attributes = {}, ...content) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...content);
  return e;
}
