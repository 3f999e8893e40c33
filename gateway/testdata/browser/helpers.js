// What the other scripts use.
(() => {
	window.$ = (selector) => document.querySelector(selector);
	window.$$ = (selector) => [...document.querySelectorAll(selector)];
	window.until = (condition) => new Promise((done, fail) => {
		const start = Date.now();
		const look = () => {
			if (condition()) done();
			else if (Date.now() - start > 90_000) fail(new Error("the condition stays false: " + condition));
			else setTimeout(look, 10);
		};
		look();
	});
	// The relative luminance of a color [WCAG 2.2], whose channels are 0 to 255.
	window.luminance = (color) => {
		const [r, g, b] = color.match(/[\d.]+/g).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	window.contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
})()
