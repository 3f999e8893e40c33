// Returns what is wider than the window.
(() => {
	const most = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth <= most) return [];
	const reaches = (e) => e.getBoundingClientRect().right > most + 1;
	return [...document.querySelectorAll("main *")].filter(reaches).map((e) => e.tagName + "." + e.className).slice(0, 5);
})()
