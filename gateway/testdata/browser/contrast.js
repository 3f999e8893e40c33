// Returns the texts whose contrast with their background is below 4.5:1 [WCAG 2.2, 1.4.3].
(() => {
	const opaque = (c) => (c.match(/[\d.]+/g)[3] ?? "1") === "1";
	const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (opaque(c)) return c; } return "rgb(255, 255, 255)"; };
	const pale = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.checkVisibility({ visibilityProperty: true }) || e.closest(":disabled, noscript")) continue;
		const ratio = contrast(getComputedStyle(e).color, ground(e));
		if (ratio < 4.5) pale.add(ratio.toFixed(2) + " " + e.tagName + "." + e.className + " " + walk.currentNode.data.trim().slice(0, 30));
	}
	for (const e of $$("input[placeholder]")) {
		const ratio = contrast(getComputedStyle(e, "::placeholder").color, ground(e));
		if (ratio < 4.5) pale.add(ratio.toFixed(2) + " placeholder " + e.id);
	}
	return [...pale];
})()
