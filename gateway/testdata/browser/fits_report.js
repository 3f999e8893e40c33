// Returns what is smaller than 12 px or outside its figure, and marks whose contrast is below 3:1.
(() => {
	const wrong = [];
	for (const e of document.querySelectorAll("body *")) {
		if ([...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && e.checkVisibility() && !["TITLE", "DESC", "title", "desc", "OPTION"].includes(e.tagName) && parseFloat(getComputedStyle(e).fontSize) < 12) wrong.push("small text: " + e.textContent.slice(0, 30));
	}
	for (const svg of document.querySelectorAll("main svg[role=img]")) {
		const box = svg.getBoundingClientRect();
		if (Math.abs(box.width - svg.getAttribute("width")) > 1) wrong.push("a figure is scaled: " + box.width + " of " + svg.getAttribute("width"));
		for (const text of svg.querySelectorAll("text")) {
			const r = text.getBoundingClientRect();
			if (r.left < box.left - 1 || r.right > box.right + 1) wrong.push("a label leaves its figure: " + text.textContent);
		}
		for (const panel of svg.querySelectorAll(".panel")) {
			const [name, value] = [".strong", ".value"].map((s) => panel.querySelector(s));
			if (name.getBoundingClientRect().right > value.getBoundingClientRect().left) wrong.push("a name meets its value: " + value.textContent);
		}
	}
	for (const e of document.querySelectorAll("details.data")) {
		if (e.scrollWidth > e.clientWidth + 1) wrong.push("a table of " + e.closest("section").id + " is " + e.scrollWidth + " px wide, of " + e.clientWidth);
	}
	for (const limits of document.querySelectorAll("small.number")) {
		const range = document.createRange();
		range.selectNodeContents(limits);
		if (range.getClientRects().length > 1) wrong.push("an interval is broken: " + limits.textContent);
	}
	for (const cell of document.querySelectorAll("tbody :is(th, td)")) for (const texts = document.createNodeIterator(cell, NodeFilter.SHOW_TEXT); ;) {
		const text = texts.nextNode();
		if (!text) break;
		for (const word of text.data.matchAll(/(?<!\S)\p{L}{2,12}:?(?!\S)/gu)) {
			const range = document.createRange();
			range.setStart(text, word.index);
			range.setEnd(text, word.index + word[0].length);
			if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) wrong.push("a word is broken in " + cell.closest("section").id + ": " + word[0]);
		}
	}
	const page = getComputedStyle(document.body).backgroundColor;
	for (const e of document.querySelectorAll(".mark :is(.dot, .bar, .interval), .line")) {
		const style = getComputedStyle(e);
		if (contrast(style[e.matches(".bar") ? "fill" : "stroke"], page) < 3 || style.opacity < 1) { wrong.push("a mark is pale"); break; }
	}
	return wrong;
})()
