// The six sections: what each shows of the responses. Each function returns an empty state as {empty}, or {figure, table, left}, where figure
// draws for a width, or {body}.
import { base, element } from "../docs/api.js";
import { bars, dots, interval, lines, percent, reasons, tiny, whole } from "./plot.js";

const most = { brands: 6, models: 12 };
const byText = (a, b) => a < b ? -1 : a > b ? 1 : 0;
export const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

// brandsOf returns the rows of brands: own ones first, then by answers that mention them, then by name.
export const brandsOf = (totals) => totals.data.toSorted((a, b) =>
  (b.kind === "own") - (a.kind === "own") || b.mention_rate.count - a.mention_rate.count || byText(a.brand_name, b.brand_name));

// modelsOf returns the models with their answers, most answers first; those of rows may have none.
export function modelsOf(totals, rows = []) {
  const answers = new Map(rows.map((row) => [row.group.model_id, 0]));
  for (const m of totals.models) answers.set(m.model_id, (answers.get(m.model_id) ?? 0) + m.answers);
  for (const { group, mention_rate: { of } } of rows) answers.set(group.model_id, Math.max(answers.get(group.model_id), of)); // models has 50 entries at most
  return [...answers].map(([id, n]) => ({ id, answers: n })).sort((a, b) => b.answers - a.answers || byText(a.id, b.id));
}

// atLeast: a response lists 50 models at most.
export const atLeast = ({ models }) => models.length < 50 ? "" : "at least ";

// A table whose rows become blocks on a narrow screen. The roles keep it a table there.
function table(caption, columns, rows) {
  const make = (name, role, attributes, ...content) => element(name, { role, ...attributes }, ...content);
  const cell = ({ name, class: c = "" }, content, i) => i === 0 ? make("th", "rowheader", { scope: "row", class: c }, ...content)
    : make("td", "cell", { class: c, "data-label": name }, element("span", {}, ...content));
  return make("table", "table", {}, element("caption", {}, caption),
    make("thead", "rowgroup", {}, make("tr", "row", {}, ...columns.map((c) => make("th", "columnheader", { scope: "col", class: c.class ?? "" }, c.name)))),
    make("tbody", "rowgroup", {}, ...rows.map(({ cells, ...attributes }) => make("tr", "row", attributes,
      ...cells.map((content, i) => cell(columns[i], [content].flat(), i))))));
}

const number = (name) => ({ name, class: "number" });
const named = (name) => ({ name, class: "name" });
const oneDecimal = (v) => (whole(v * 10) / 10).toFixed(1);
const tenth = (v) => v === null ? "–" : `${oneDecimal(v * 100)}\u00a0%`;
const few = (rate) => rate.low_sample && rate.value !== null ? "few answers" : "";
const small = (text) => element("small", {}, text);
const why = (cell) => small(reasons[cell.reason]);
const shareCell = (share, ...more) => share.value === null ? ["– ", why(share)] : [percent(share.value), ...more, ...(few(share) ? [" ", small("few answers")] : [])];
const rateCell = (rate) => shareCell(rate, " ", element("small", { class: "number" }, interval(rate)));
const brandName = (row) => [element("span", { class: `key ${row.kind}`, "aria-hidden": "true" }), element("span", { class: "name", dir: "auto" }, row.brand_name), " ", small(row.kind)];
const points = (v, plus = "", n = whole(v * 100)) => `${n > 0 ? plus : n < 0 ? "−" : ""}${Math.abs(n)}`;

// verdict writes the change of a rate; there is an arrow only with a clear one.
function verdict(change) {
  if (!change) return "–";
  const { difference: d, verdict: v, reason } = change;
  if (v === "not_comparable") return `not comparable: ${reasons[reason] ?? reason}`;
  if (v === "no_clear_change") return "– no clear change";
  return [element("span", { "aria-hidden": "true" }, v === "up" ? "▲" : "▼"), ` ${v} ${points(d.value, "+")} `, small(`(${points(d.low)} to ${points(d.high)})`)];
}

export function brands({ totals, change, changeNote }) {
  if (totals.data.length === 0) {
    return { empty: ["The account has no brands. Create one with ", element("a", { href: `${base}/docs#createBrand` }, "POST /v1/brands"), "; stored answers are recounted."] };
  }
  const changes = new Map(change?.data.map((row) => [row.brand_id, row.mention_rate]));
  const columns = [{ name: "Brand" }, number("Mention rate"), { name: "Change", class: "change" }, number("Citation rate"),
    number("Share of voice"), number("First"), number("Position"), number("Answers")];
  const rows = brandsOf(totals).map((row) => ({ "data-brand": row.brand_id, cells: [
    brandName(row), rateCell(row.mention_rate), change ? verdict(changes.get(row.brand_id)) : changeNote, rateCell(row.citation_rate),
    shareCell(row.share_of_voice), shareCell(row.first_rate), row.position.value === null ? ["– ", why(row.position)] : oneDecimal(row.position.value),
    row.mention_rate.count.toLocaleString("en")] }));
  return { body: [table("Rates with their 95 % intervals; change in points against the first half of the period; answers that mention the brand", columns, rows)] };
}

// extremes says which rates are the highest and the lowest.
function extremes(values) {
  const known = values.filter((v) => v.value !== null).sort((a, b) => b.value - a.value);
  if (known.length === 0) return "No answers.";
  const say = (v) => `${v.name}, ${percent(v.value)}`;
  return `Highest: ${say(known[0])}; lowest: ${say(known.at(-1))}.`;
}

const leftOut = (...parts) => parts.filter(([shown, all]) => shown < all).map(([shown, all, what]) => `${shown} of ${all} ${what}`).join(", ");

export function byModel({ totals, byModel: response, names }) {
  const all = { brands: brandsOf(totals), models: modelsOf(totals, response.data) };
  const shown = { brands: all.brands.slice(0, most.brands), models: all.models.slice(0, most.models) };
  const rowOf = new Map(response.data.map((row) => [`${row.group.model_id} ${row.brand_id}`, row]));
  const groups = shown.models.map(({ id, answers }) => ({
    id, name: names.get(id) ?? id, note: plural(answers, "answer"), rows: shown.brands.map((b) => rowOf.get(`${id} ${b.brand_id}`)).filter(Boolean),
  }));
  const flat = groups.flatMap((g) => g.rows.map((row) => ({ name: `${row.brand_name} on ${g.name}`, value: row.mention_rate.value })));
  const columns = [named("Model"), named("Brand"), ...rateColumns];
  return {
    figure: (width) => dots(width, groups, "Mention rate by model and brand", extremes(flat)),
    table: table("Mention rate by model and brand", columns, groups.flatMap((g) => g.rows.map((row) => ({ cells: [g.name, row.brand_name, ...rateCells(row.mention_rate)] })))),
    left: leftOut([shown.models.length, all.models.length, "models"], [shown.brands.length, all.brands.length, "brands"]),
  };
}

const rateColumns = [number("Rate"), number("Low"), number("High"), number("Answers"), { name: "Note" }];
const rateCells = (rate) => [tenth(rate.value), tenth(rate.low), tenth(rate.high), `${rate.count} of ${rate.of}`, rate.value === null ? reasons[rate.reason] : few(rate)];

export function overTime({ totals, overTime: response, period, unit }) {
  const all = brandsOf(totals), shown = all.slice(0, most.brands);
  const rowOf = new Map(response.data.map((row) => [`${row.group[unit]} ${row.brand_id}`, row.mention_rate]));
  const asOf = response.as_of.slice(0, 10);
  const buckets = bucketsOf(period, unit).filter((b) => b.start <= asOf);
  for (const b of buckets) {
    b.none = shown.every((row) => (rowOf.get(`${b.start} ${row.brand_id}`)?.value ?? null) === null);
    b.open = b.end > asOf;
    b.label = dayOf(b.start);
  }
  if (buckets.length === 0 || buckets.every((b) => b.none)) return { empty: ["No answers in this period."] };
  const series = shown.map((row) => ({ row, rates: buckets.map((b) => rowOf.get(`${b.start} ${row.brand_id}`) ?? null) }));
  const flat = series.flatMap(({ row, rates }) => rates.flatMap((r, i) => r ? [{ name: `${row.brand_name}, ${buckets[i].label}`, value: r.value }] : []));
  const none = { value: null, low: null, high: null, count: 0, of: 0, reason: "no_answers" };
  const columns = [{ name: unit[0].toUpperCase() + unit.slice(1) }, named("Brand"), ...rateColumns];
  const note = (rate, b) => [rate.value === null ? reasons[rate.reason] : few(rate), b.open ? "in progress" : ""].filter(Boolean).join(", ");
  return {
    figure: (width) => lines(width, buckets, series, splitOf(buckets, period.middle), `Mention rate by ${unit} and brand`, extremes(flat)),
    table: table(`Mention rate by ${unit} and brand`, columns, series.flatMap(({ row, rates }) => buckets.map((b, i) => {
      const rate = rates[i] ?? none;
      return { cells: [b.label, row.brand_name, ...rateCells(rate).slice(0, 4), note(rate, b)] };
    }))),
    left: leftOut([shown.length, all.length, "brands"]),
  };
}

const day = 86_400_000;
const date = (text) => new Date(`${text}T00:00:00Z`);
const text = (d) => d.toISOString().slice(0, 10);
export const addDays = (from, n) => text(new Date(date(from).getTime() + n * day));
export const days = (from, to) => Math.round((date(to) - date(from)) / day);
const dates = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const times = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
export const dayOf = (start) => dates.format(date(start));
export const timeOf = (instant) => `${times.format(new Date(instant))} UTC`;

// bucketsOf returns the days, weeks or months of a period; weeks begin on Monday.
function bucketsOf({ from, to }, unit) {
  const all = [];
  let start = unit === "week" ? addDays(from, -((date(from).getUTCDay() + 6) % 7)) : unit === "month" ? `${from.slice(0, 7)}-01` : from;
  while (start < to) {
    const d = date(start);
    const end = unit === "month" ? text(new Date(Date.UTC(d.getUTCFullYear(), d.getUTCMonth() + 1, 1))) : addDays(start, unit === "week" ? 7 : 1);
    all.push({ start, end });
    start = end;
  }
  return all;
}

// splitOf returns the position of a date, in buckets.
function splitOf(buckets, at) {
  const i = buckets.findIndex((b) => b.start <= at && at < b.end);
  return i < 0 ? null : i + days(buckets[i].start, at) / days(buckets[i].start, buckets[i].end);
}

export function share({ totals }) {
  const all = brandsOf(totals), shown = all.slice(0, most.brands);
  const flat = shown.map((row) => ({ name: row.brand_name, value: row.share_of_voice.value }));
  return {
    figure: (width) => bars(width, shown, "Share of voice by brand", extremes(flat)),
    table: table("Share of voice by brand", [named("Brand"), number("Share"), number("Mentions"), { name: "Note" }],
      shown.map((row) => ({ cells: [row.brand_name, tenth(row.share_of_voice.value), `${row.share_of_voice.count} of ${row.share_of_voice.of}`, row.share_of_voice.value === null ? reasons[row.share_of_voice.reason] : ""] }))),
    left: leftOut([shown.length, all.length, "brands"]),
  };
}

const hostName = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{1,62}$/;

export function sources({ sources: pages, brandNames }) {
  const rows = pages.flatMap((p) => p.data);
  if (rows.length === 0) return { empty: ["No sources in this period."] };
  const columns = [named("Host"), named("Owner"), number("Answers"), number("Share"),
    number("Models"), number("Questions"), number("Last cited")];
  const first = rows[0].answers;
  const body = table("Hosts that answers cite, with the share of all citations", columns, rows.map((row) => ({ cells: [
    hostName.test(row.host) ? element("a", { href: `https://${row.host}/`, "aria-label": row.host, rel: "noopener noreferrer nofollow" }, ...row.host.split(/(?<=\.)/).flatMap((part) => [part, element("wbr")])) : row.host,
    brandNames.has(row.brand_id) ? `${row.owner}: ${brandNames.get(row.brand_id)}` : row.owner,
    [tiny(row.answers / first, row.owner), element("span", {}, row.answers.toLocaleString("en"))], row.citation_share.value === null ? ["– ", why(row.citation_share)] : percent(row.citation_share.value),
    String(row.models), String(row.questions), dayOf(row.last_cited_at.slice(0, 10))] })));
  return { body: [body], more: pages.at(-1).next_cursor };
}

export function alerts({ alerts: response, names, brandNames }) {
  if (response.data.length === 0) return { empty: ["No open alerts."] };
  const say = (word) => word.replaceAll("_", " ");
  return {
    body: [element("ul", { class: "alerts" }, ...response.data.map((a) => element("li", {},
      element("p", { class: "about" }, element("strong", {}, a.severity), ` ${say(a.type)}`, " · ", element("time", { datetime: a.detected_at }, timeOf(a.detected_at))),
      element("h3", { dir: "auto" }, a.title), element("p", { dir: "auto" }, a.message),
      element("p", { class: "about" }, ...[brandNames.get(a.brand_id) ?? a.brand_id, names.get(a.model_id) ?? a.model_id, a.country].filter(Boolean)
        .flatMap((about, i) => [i ? " · " : "", element("bdi", {}, about)])))))],
    left: response.has_more ? `The latest ${response.data.length} alerts; there are more.` : "",
  };
}

// notes says what a reader must know of the totals.
export function notes(totals, names) {
  const a = totals.answers, all = a.ok + a.empty + a.truncated + a.failed + a.canceled + a.pending + a.recounting;
  const lost = a.failed + a.truncated + a.empty;
  const versions = new Map();
  for (const m of totals.models) if (m.model_version !== null) versions.set(m.model_id, (versions.get(m.model_id) ?? 0) + 1);
  const are = (n) => n === 1 ? "is" : "are", some = (n, text) => n > 0 && `${plural(n, "answer")} ${are(n)} ${text}`;
  return [
    some(a.pending, "not final yet; the figures will change."),
    some(a.recounting, `being recounted after a change of brands and ${are(a.recounting)} not counted until then.`),
    some(a.frozen, "counted with earlier brands: their texts were deleted."),
    lost > 0.05 * all && `${lost.toLocaleString("en")} of ${plural(all, "answer")} could not be counted (failed, cut or empty).`,
    ...[...versions].filter(([, n]) => n > 1).map(([id, n]) => `${names.get(id) ?? id} was served in ${atLeast(totals)}${n} versions; a change may be the model's.`),
  ].filter(Boolean);
}
