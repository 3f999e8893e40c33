// Makes the page keep its responses, by address, and what it says while it waits. A test may replace change, which returns
// another response to an address, or null.
(() => {
	window.waits = [];
	const waiting = document.getElementById("waiting");
	new MutationObserver(() => waits.push(waiting.textContent)).observe(waiting, { childList: true, subtree: true, characterData: true });
	window.responses = {};
	window.sent = [];
	const real = window.fetch;
	window.change = () => null;
	window.fetch = async (request) => {
		const address = new URL(request.url).pathname.slice("/external-api-v1".length) + new URL(request.url).search;
		sent.push(address);
		const response = await change(address) ?? await real(request);
		responses[address] = await response.clone().json().catch(() => null);
		return response;
	};
})()
