// Returns what is wider than the window, smaller than 12 px or outside its figure, and marks whose contrast
// is below 3:1.
(() => {
	const wrong = [], most = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth > most) wrong.push("the page is " + document.documentElement.scrollWidth + " px wide: " +
		[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > most + 1).map((e) => e.tagName + "." + e.getAttribute("class")).slice(0, 5).join());
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
	const channels = (c) => c.match(/[\d.]+/g).map(Number).slice(0, 3);
	const luminance = (c) => { const [r, g, b] = channels(c).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const page = luminance(getComputedStyle(document.body).backgroundColor);
	for (const e of document.querySelectorAll(".mark :is(.dot, .bar, .interval), .line")) {
		const [a, b] = [luminance(getComputedStyle(e)[e.matches(".bar") ? "fill" : "stroke"]), page].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < 3 || getComputedStyle(e).opacity < 1) { wrong.push("a mark is pale"); break; }
	}
	return wrong;
})()
