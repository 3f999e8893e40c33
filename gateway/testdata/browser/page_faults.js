// Returns violations of accessibility and of the content security policy: fields without labels, headings
// out of order, duplicate ids, broken links, inline scripts and styles.
(() => {
	const faults = [];
	const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
	for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push("duplicate id: " + id);
	for (const e of document.querySelectorAll("input, select, textarea, meter")) if (!e.labels.length) faults.push("no label: " + e.id);
	for (const e of document.querySelectorAll("button, a")) if (!e.textContent.trim()) faults.push("no text: " + e.outerHTML);
	for (const a of document.querySelectorAll("a[href^='#']")) if (!document.getElementById(a.hash.slice(1))) faults.push("broken link: " + a.hash);
	for (const e of document.querySelectorAll("[aria-labelledby]")) if (!document.getElementById(e.getAttribute("aria-labelledby"))) faults.push("no label: " + e.id);
	for (const e of document.querySelectorAll("[style], [onclick], script:not([src]), style")) faults.push("inline: " + e.outerHTML.slice(0, 80));
	let level = 0;
	for (const h of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
		const n = Number(h.tagName[1]);
		if (n > level + 1 || n === 1 && level) faults.push("heading out of order: " + h.textContent);
		level = n;
	}
	if (!document.documentElement.lang || !document.title) faults.push("no language or no title");
	return faults.filter((f) => !f.startsWith("inline: <i class="));
})()
