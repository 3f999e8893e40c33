// Returns the texts whose contrast with their background is below 4.5:1 [WCAG 2.2, 1.4.3].
(() => {
	const channels = (c) => { const m = c.match(/[\d.]+/g).map(Number); return { rgb: m.slice(0, 3), alpha: m[3] ?? 1 }; };
	const luminance = (rgb) => { const [r, g, b] = rgb.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = (e) => { for (; e; e = e.parentElement) { const c = channels(getComputedStyle(e).backgroundColor); if (c.alpha === 1) return c.rgb; } return [255, 255, 255]; };
	const pale = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.checkVisibility({ visibilityProperty: true }) || e.closest(":disabled, noscript")) continue;
		const [a, b] = [luminance(channels(getComputedStyle(e).color).rgb), luminance(ground(e))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) pale.add(ratio.toFixed(2) + " " + e.tagName + "." + e.className + " " + walk.currentNode.data.trim().slice(0, 30));
	}
	return [...pale];
})()
