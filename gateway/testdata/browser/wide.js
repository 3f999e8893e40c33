// Returns whether the page is wider than the window, and what reaches beyond it.
(() => {
	const most = document.documentElement.clientWidth, is = document.documentElement.scrollWidth;
	const beyond = (e) => e.getBoundingClientRect().right > most + 1;
	return is <= most ? [] : ["the page is " + is + " px wide", ...$$("body *").filter(beyond).map((e) => e.tagName + "." + e.getAttribute("class")).slice(0, 5)];
})()
