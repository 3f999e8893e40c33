// "Your brands": the active brands of the account, how often answers mention and cite them, and a form that creates one.
import { element, once } from "./api.js";
import { attempt, onPress, read, write } from "./requests.js";

const $ = (id) => document.getElementById(id);
const say = (text) => { $("brands-state").textContent = text; };

export function showBrands() {
  $("key").addEventListener("input", () => { // perhaps of another account
    $("brand-list").replaceChildren();
    say("");
  });
  onPress($("load-brands"), () => attempt(say, async () => say(await load())));
  $("new-brand").addEventListener("submit", (e) => {
    e.preventDefault();
    once(e.target.querySelector("button"), () => attempt(say, create));
  });
}

// load shows the brands and returns what to say of them. An account has at most 100 active brands, so one page has them all.
async function load() {
  let brands = [], metrics;
  try {
    [{ data: brands }, metrics] = await Promise.all([read("/v1/brands", { status: "active", limit: 200 }), read("/v1/metrics")]);
  } finally {
    $("brand-list").replaceChildren(...brands.map((b) => brandItem(b, metrics.data.find((row) => row.brand_id === b.id))));
  }
  return brands.length ? counted(metrics.answers) : "The account has no active brands.";
}

function counted({ ok, pending, recounting }) {
  const waiting = [[pending, "pending"], [recounting, "to be counted again"]].filter(([n]) => n > 0).map(([n, what]) => `${n} ${what}`);
  return `${ok} ${ok === 1 ? "answer is" : "answers are"} counted` + (waiting.length ? `; ${waiting.join(", ")}. Load again for their numbers.` : ".");
}

const listed = (id) => $(id).value.split(",").map((s) => s.trim()).filter((s) => s);

async function create() {
  const { name } = await write("/v1/brands", {
    kind: $("brand-kind").value, name: $("brand-name").value.trim(), aliases: listed("brand-aliases"), domains: listed("brand-domains"),
  });
  for (const id of ["brand-name", "brand-aliases", "brand-domains"]) $(id).value = "";
  say(`${name} is created. ${await load()}`);
}

// brandItem returns an item of the list. A brand that was created between the two reads has no row.
function brandItem({ name, kind, aliases, domains }, row) {
  const rates = row ? [...rate("mentioned in", row.mention_rate), ...rate("cited in", row.citation_rate)] : [];
  return element("li", {}, element("p", {}, element("strong", {}, name), element("span", {}, kind), element("span", {}, [...aliases, ...domains].join(", "))),
    ...rates);
}

const reasons = { no_answers: "no answers are counted", no_sources: "no sources are known" };
const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

// rate says a rate in words and draws its interval. Only the text is read to users of screen readers.
function rate(verb, { value, count, of, low, high, low_sample, reason }) {
  if (value === null) return [element("p", {}, element("span", {}, `${verb}: ${reasons[reason] ?? reason}`))];
  const limits = element("i", { class: "limits" }), point = element("i", { class: "point" });
  Object.assign(limits.style, { left: `${100 * low}%`, width: `${100 * (high - low)}%` });
  Object.assign(point.style, { left: `${100 * value}%`, transform: `translateX(-${100 * value}%)` }); // inside of the drawing at 0 and 1, too
  return [
    element("p", {}, element("span", {}, `${verb} ${count} of ${of} answers: ${percent.format(value)} ` +
      `(95% interval ${percent.format(low)} to ${percent.format(high)}${low_sample ? "; few answers" : ""})`)),
    element("div", { class: "interval", "aria-hidden": "true" }, limits, point),
  ];
}
