// The results of a run: its jobs with their answers, citations and errors, page by page.
import { element } from "./api.js";
import { onPress, read } from "./requests.js";

// resultsOf returns an element that reads the first page each time it is opened.
export function resultsOf(id) {
  const list = element("ol", { class: "results" }), status = element("p", { role: "status" });
  const more = element("button", { type: "button", hidden: "" }, "More results");
  let cursor = null, opened = 0;
  const load = async () => {
    const mine = opened;
    status.textContent = "Loading…";
    try {
      const page = await read(`/v1/runs/${id}/results`, cursor ? { limit: 20, cursor } : { limit: 20 });
      if (mine !== opened) return; // closed and opened again
      list.append(...page.data.map(result));
      cursor = page.next_cursor;
      if (!page.has_more && document.activeElement === more) details.querySelector("summary").focus();
      more.hidden = !page.has_more;
      status.textContent = "";
    } catch (e) {
      if (mine === opened) status.textContent = e.message;
    }
  };
  const details = element("details", {}, element("summary", { "aria-label": `Results of ${id}` }, "Results"), list, status, more);
  onPress(more, load);
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    list.replaceChildren();
    more.hidden = true;
    cursor = null;
    opened++;
    load();
  });
  return details;
}

function result(job) {
  return element("li", {}, resultHead(job), ...(job.answer ? answer(job.answer) : []), ...(job.error ? [failure(job.error)] : []),
    ...(job.status === "completed" && !job.answer ? [element("p", {}, "The answer was deleted because of its age.")] : []));
}

function resultHead({ model_id, question_id, repetition, status }) {
  return element("p", {}, element("code", {}, model_id), element("code", {}, question_id), element("span", {}, `repetition ${repetition}`),
    element("strong", {}, status));
}

function answer({ text, citations, search_queries }) {
  return [
    element("blockquote", {}, text || "(no text)"),
    ...(citations.length ? [element("ol", { class: "citations" }, ...citations.map(citation))] : []),
    ...(search_queries.length ? [element("p", {}, element("span", {}, "Searched for: " + search_queries.join(" · ")))] : []),
  ];
}

function citation({ url, domain, title }) {
  return element("li", {}, link(url, title || url), element("span", {}, domain));
}

// link returns a link to a web page, and the text alone for every other address.
function link(url, text) {
  if (!/^https?:\/\//i.test(url)) return text;
  return element("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow" }, text);
}

function failure({ code, message }) {
  return element("p", {}, element("code", {}, code), element("span", {}, message));
}
