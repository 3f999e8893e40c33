// Behavior of the page. It inserts text and elements only, so that no text of the server is interpreted as HTML.
import { showBrands } from "./brands.js";
import { showConsole } from "./console.js";
import { showRuns } from "./runs.js";
import { showWebhooks } from "./webhooks.js";

const origin = location.origin + document.body.dataset.base;
document.body.classList.add("scripted");
for (const e of document.querySelectorAll("[data-origin]")) e.textContent = origin;

// On a narrow screen the contents are closed until the reader opens them.
const menu = document.querySelector(".menu");
const wide = matchMedia("(min-width: 50rem)");
const fold = () => { menu.open = wide.matches; };
wide.addEventListener("change", fold);
fold();
menu.addEventListener("click", (e) => { if (e.target.closest("a") && !wide.matches) menu.open = false; });

// Selecting a language selects it for all samples. The selected tab keeps its position on the screen.
document.addEventListener("change", (e) => {
  if (!e.target.matches(".samples input")) return;
  const before = e.target.getBoundingClientRect().top;
  for (const i of document.querySelectorAll(`.samples input[value=${e.target.value}]`)) i.checked = true;
  scrollBy({ top: e.target.getBoundingClientRect().top - before, behavior: "instant" });
});

// The contents mark the section that is being read.
const links = new Map([...document.querySelectorAll("nav a[href^='#']")].map((a) => [a.hash.slice(1), a]));
const watch = new IntersectionObserver((entries) => {
  for (const e of entries) {
    if (!e.isIntersecting) continue;
    for (const a of links.values()) a.removeAttribute("aria-current");
    links.get(e.target.id).setAttribute("aria-current", "true");
  }
}, { rootMargin: "-10% 0px -80% 0px" });
for (const id of links.keys()) watch.observe(document.getElementById(id));

showConsole();
showRuns();
showBrands();
showWebhooks();
