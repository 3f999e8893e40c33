// Scales and marks of the figures, which are drawn for a width in pixels. Attributes repeat the numbers of the response.
const names = "http://www.w3.org/2000/svg";

// svg creates an element of SVG.
export function svg(name, attributes = {}, ...content) {
  const e = document.createElementNS(names, name);
  for (const [k, v] of Object.entries(attributes)) if (v !== null && v !== undefined) e.setAttribute(k, typeof v === "number" ? +v.toFixed(2) : v);
  e.append(...content);
  return e;
}

// whole rounds half away from zero, as the API does: a tenth of a percent is not exact in binary.
export const whole = (v) => Math.sign(v) * Math.round(+Math.abs(v).toFixed(5));

// percent writes a rate without decimals; only exact rates are 0 % and 100 %.
export function percent(v) {
  if (v === null) return "–";
  if (v > 0 && v < 0.01) return "<1\u00a0%";
  if (v > 0.99 && v < 1) return ">99\u00a0%";
  return `${whole(v * 100)}\u00a0%`;
}

// interval writes the limits of a rate.
export const interval = ({ low, high }) => low === null ? "" : `${percent(low).slice(0, -2)}–${percent(high)}`;

const pen = document.createElement("canvas").getContext("2d");

function lengthOf(text, bold) {
  pen.font = `${bold ? 600 : 400} 13px system-ui, sans-serif`;
  return pen.measureText(text).width;
}

lengthOf("0"); // the first measurement loads the font

// fit cuts a text to a width.
function fit(text, width, bold) {
  const long = lengthOf(text, bold);
  if (long <= width) return text;
  let n = Math.ceil(text.length * width / long);
  for (; n > 0 && lengthOf(text.slice(0, n) + "…", bold) > width;) n--;
  return text.slice(0, n).replace(/[\ud800-\udbff]$/, "") + "…";
}

const line = (name, x1, y1, x2, y2) => svg("line", { class: name, x1, y1, x2, y2 });
const label = (name, x, y, anchor, text) => svg("text", { class: name, x, y, "text-anchor": anchor }, text);

// words draws a text that is cut to a width; pointers show the whole text.
function words(text, x, y, width, attributes = {}) {
  const shown = fit(text, width, attributes.class === "strong");
  return svg("text", { x, y, ...attributes }, ...(shown === text ? [] : [svg("title", {}, text)]), shown);
}

// picture is the root of a figure, with its name and a sentence about it.
function picture(width, height, title, about, attributes, ...content) {
  return svg("svg", { role: "img", width, height, viewBox: `0 0 ${width} ${height}`, ...attributes },
    svg("title", {}, title), svg("desc", {}, about), ...content);
}

// dot is a circle for an own brand and a square for a competitor.
function dot(kind, x, y, size, name) {
  const attributes = { class: name };
  return kind === "own" ? svg("circle", { ...attributes, cx: x, cy: y, r: size })
    : svg("rect", { ...attributes, x: x - size * 0.9, y: y - size * 0.9, width: size * 1.8, height: size * 1.8 });
}

const dotClass = (hollow) => hollow ? "dot hollow" : "dot";

// mark is the group of one value. It has no attributes of values if the value is null.
function mark(row, rate, attributes, ...content) {
  const none = rate.value === null;
  return svg("g", {
    class: ["mark", row.kind, ...(none ? ["none"] : rate.low_sample ? ["low"] : [])].join(" "), "data-brand": row.brand_id, ...attributes,
    ...(none ? {} : { "data-value": `${rate.value}`, "data-low": rate.low && `${rate.low}`, "data-high": rate.high && `${rate.high}` }),
  }, ...content);
}

const valueOf = (rate) => rate.value === null ? "– no answers" : `${percent(rate.value)} (${interval(rate)})${rate.low_sample ? " few answers" : ""}`;

// dots draws a group a model, and in it a row a brand: a dot at the value and a bar from low to high. groups are {id, name, note, rows}.
export function dots(width, groups, title, about) {
  const wide = width >= 560;
  const values = groups.flatMap((g) => g.rows.map((row) => lengthOf(valueOf(row.mention_rate))));
  const x0 = wide ? 150 : 12, x1 = width - (wide ? Math.ceil(Math.max(0, ...values)) + 16 : 12);
  const x = (v) => x0 + v * (x1 - x0);
  let y = 24;
  const content = [];
  for (const group of groups) {
    const top = y;
    content.push(words(group.name, 0, y += 14, width - 110, { class: "strong" }), label("tick", width, y, "end", group.note));
    y += 6;
    for (const row of group.rows) {
      const rate = row.mention_rate, value = valueOf(rate);
      const at = wide ? y + 11 : y + 27;
      const shown = [words(row.brand_name, 16, y + 15, wide ? x0 - 26 : width - 28 - lengthOf(value)), dot(row.kind, 6, y + 11, 4.5, "key")];
      if (rate.value !== null) {
        shown.push(line("interval", x(rate.low), at, x(rate.high), at),
          ...[rate.low, rate.high].map((v) => line("cap", x(v), at - 4, x(v), at + 4)),
          dot(row.kind, x(rate.value), at, 5, dotClass(rate.low_sample)));
      }
      shown.push(label("value", wide ? x1 + 12 : width, y + 15, wide ? "start" : "end", value));
      content.push(mark(row, rate, { "data-model": group.id }, ...shown));
      y += wide ? 23 : 40;
    }
    content.unshift(...[0, 0.25, 0.5, 0.75, 1].map((v) => line("grid", x(v), top + 20, x(v), y)));
    y += 12;
  }
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((v) => label("tick", x(v), 14, wide || v > 0 && v < 1 ? "middle" : v ? "end" : "start", v === 1 ? "100 %" : String(v * 100)));
  return picture(width, y, title, about, { "data-x0": x0, "data-x1": x1, "data-max": 1 }, ...ticks, ...content);
}

// bars draws a bar a brand, from 0 to its share of voice.
export function bars(width, rows, title, about) {
  const most = Math.max(...rows.map((r) => r.share_of_voice.value ?? 0));
  const max = Math.max(0.1, Math.ceil(most * 10 - 1e-9) / 10);
  const left = Math.min(150, Math.round(width * 0.38)), x0 = left, x1 = width - 64;
  const x = (v) => x0 + v / max * (x1 - x0);
  const content = rows.map((row, i) => {
    const y = 22 + i * 30, share = row.share_of_voice;
    const value = share.value === null ? `– ${reasons[share.reason]}` : percent(share.value);
    return mark(row, share, {}, dot(row.kind, 6, y + 11, 4.5, "key"), words(row.brand_name, 16, y + 15, left - 26),
      ...(share.value === null ? [] : [svg("rect", { class: "bar", x: x0, y, width: x(share.value) - x0, height: 20 })]),
      svg("text", { class: "value", x: x(share.value ?? 0) + 8, y: y + 15 }, value));
  });
  const bottom = 22 + rows.length * 30;
  return picture(width, bottom, title, about, { "data-x0": x0, "data-x1": x1, "data-max": max },
    ...[0, max].flatMap((v) => [line("grid", x(v), 18, x(v), bottom - 8),
      label("tick", x(v), 12, "middle", percent(v))]), ...content);
}

// Words for the reasons of a null.
export const reasons = {
  no_answers: "no answers", no_sources: "no known sources", no_mentions: "not mentioned", no_competitors: "no competitors", no_citations: "no citations",
};

// stretches returns the runs of consecutive items that satisfy a condition, as arrays of indexes.
function stretches(items, condition) {
  const all = [];
  items.forEach((item, i) => {
    if (!condition(item)) return;
    if (all.at(-1)?.at(-1) === i - 1) all.at(-1).push(i); else all.push([i]);
  });
  return all;
}

// lines draws a panel a brand: its rate in each bucket, with a band from low to high. series are {row, rates}, with a rate or null for each
// of the buckets {start, label, open}. split is where the period is halved, in buckets.
export function lines(width, buckets, series, split, title, about) {
  const x0 = 44, x1 = width - 16, height = 84, gap = 46;
  const step = (x1 - x0) / buckets.length;
  const x = (i) => x0 + (i + 0.5) * step;
  const missing = stretches(buckets, (b) => b.none);
  const panels = series.map(({ row, rates }, n) => {
    const top = 22 + n * (height + gap), y0 = top + height, y = (v) => y0 - v * height;
    const last = rates.findLast((r) => r && r.value !== null), latest = last ? `latest ${percent(last.value)} (${interval(last)})` : "no answers";
    const content = [
      words(row.brand_name, x0 + 14, top - 8, width - x0 - 22 - lengthOf(latest), { class: "strong" }),
      label("value", width, top - 8, "end", latest),
      ...[0, 0.5, 1].flatMap((v) => [line("grid", x0, y(v), x1, y(v)),
        label("tick", x0 - 6, y(v) + 4, "end", v === 1 ? "100 %" : String(v * 100))]),
      ...missing.flatMap((run) => [svg("rect", { class: "gap", x: x0 + run[0] * step, y: top, width: run.length * step, height, fill: "url(#hatch)" }),
        svg("text", { class: "tick halo", "text-anchor": "middle", transform: `translate(${(x0 + (run[0] + run.length / 2) * step + 4).toFixed(2)} ${(top + height / 2).toFixed(2)}) rotate(-90)` }, "no answers")]),
    ];
    content.push(dot(row.kind, x0 + 4, top - 12.5, 4.5, "key"));
    if (split !== null) content.push(line("split", x0 + split * step, top, x0 + split * step, y0));
    for (const run of stretches(rates, (r) => r && r.value !== null)) {
      const edge = (name, indexes) => indexes.map((i) => `${x(i).toFixed(2)} ${y(rates[i][name]).toFixed(2)}`).join("L");
      content.push(svg("path", { class: "band", d: `M${edge("low", run)}L${edge("high", run.toReversed())}Z` }),
        svg("polyline", { class: "line", points: run.map((i) => `${x(i).toFixed(2)},${y(rates[i].value).toFixed(2)}`).join(" ") }));
    }
    buckets.forEach((bucket, i) => {
      const rate = rates[i] ?? { value: null };
      content.push(mark(row, rate, { "data-bucket": bucket.start }, ...(rate.value === null ? [] : [
        line("interval", x(i), y(rate.low), x(i), y(rate.high)),
        dot(row.kind, x(i), y(rate.value), Math.min(3.5, step / 4), dotClass(rate.low_sample || bucket.open))])));
    });
    return svg("g", { class: `panel ${row.kind}`, "data-brand": row.brand_id, "data-y0": y0, "data-y1": top }, ...content);
  });
  const bottom = 22 + series.length * (height + gap) - gap;
  const hatch = svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, line("hatch", 0, 0, 0, 6));
  return picture(width, bottom + 22, title, about, { "data-x0": x0, "data-x1": x1 }, svg("defs", {}, hatch), ...panels,
    label("tick", x0, bottom + 17, "start", buckets[0].label),
    ...(buckets.length > 1 ? [label("tick", x1, bottom + 17, "end", buckets.at(-1).label)] : []));
}

// tiny draws the bar of a row of a table.
export const tiny = (part, kind) => svg("svg", { class: "tiny", width: 60, height: 10, "aria-hidden": "true" },
  svg("rect", { class: `bar ${kind}`, width: 60 * part, height: 10 }));
