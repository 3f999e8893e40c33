// "Your webhooks": the webhooks of the account, their deliveries, tests, and a form that creates one.
import { element, once } from "./api.js";
import { attempt, onPress, read, write } from "./requests.js";

const $ = (id) => document.getElementById(id);
const say = (text) => { $("webhooks-state").textContent = text; };

export function showWebhooks() {
  $("key").addEventListener("input", () => { // perhaps of another account
    $("webhook-list").replaceChildren();
    $("webhook-made").hidden = true;
    $("webhook-secret").textContent = "";
    say("");
  });
  onPress($("load-webhooks"), () => attempt(say, load));
  $("new-webhook").addEventListener("submit", (e) => {
    e.preventDefault();
    once(e.target.querySelector("button"), () => attempt(say, create));
  });
}

async function load() {
  let data = [];
  try {
    ({ data } = await read("/v1/webhooks"));
  } finally {
    $("webhook-list").replaceChildren(...data.map(webhookItem));
  }
  say(data.length ? "" : "The account has no webhooks.");
}

// create shows the secret, which no other response has.
async function create() {
  const events = $("webhook-events").value.split(",").map((s) => s.trim()).filter((s) => s);
  const made = await write("/v1/webhooks", { url: $("webhook-url").value.trim(), events });
  $("webhook-secret").textContent = made.secret;
  $("webhook-made").hidden = false;
  await load();
  say("Created. Its secret is shown only this once.");
}

function webhookItem(webhook) {
  const list = element("ul", { class: "runs" });
  const details = element("details", {}, element("summary", { "aria-label": `Deliveries to ${webhook.url}` }, "Deliveries"), list);
  let reading = 0; // the number of the latest reading; an earlier one that ends later is ignored
  // show reads the deliveries, and while one is pending and shown, up to more times again.
  const show = (more = 10) => attempt(say, async () => {
    const mine = ++reading;
    const { data } = await read(`/v1/webhooks/${webhook.id}/deliveries`, { limit: 20 });
    if (mine !== reading) return;
    list.replaceChildren(...(data.length ? data.map(delivery) : [element("li", {}, "There are no deliveries.")]));
    if (!more || !data.some((d) => d.status === "pending")) return;
    setTimeout(() => { if (mine === reading && details.open && details.isConnected) show(more - 1); }, 2000);
  });
  details.addEventListener("toggle", () => { if (details.open) show(); });
  const test = element("button", { type: "button", "aria-label": `Send a test to ${webhook.url}` }, "Send a test");
  onPress(test, () => attempt(say, async () => {
    const event = await write(`/v1/webhooks/${webhook.id}/test`, {});
    say(`The event ${event.id} is queued.`);
    if (details.open) show();
    details.open = true;
  }));
  return element("li", {}, webhookHead(webhook), element("div", { class: "actions" }, details, test));
}

function webhookHead({ url, events, enabled, disabled_reason }) {
  return element("p", {}, element("code", {}, url), element("strong", {}, enabled ? "enabled" : `disabled: ${disabled_reason}`),
    element("span", {}, events.join(", ")));
}

function delivery({ event_id, type, status, attempts, last_status, last_error }) {
  const outcome = [`${attempts} ${attempts === 1 ? "attempt" : "attempts"}`, last_error, last_status].filter((v) => v !== null);
  return element("li", {}, element("p", {}, element("code", {}, event_id), element("span", {}, type), element("strong", {}, status),
    element("span", {}, outcome.join(", "))));
}
