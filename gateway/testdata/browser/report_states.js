// Defines states: functions that load the report with responses that differ from the server's, and return what is wrong
// with what it shows then. Returns their names. The page must be new, and keep its responses (record.js).
(() => {
	const figures = () => $$("main svg, main table, main li").length;
	const is = (id, state) => $("#" + id).dataset.state === state;
	const said = (id) => $("#" + id).dataset.state + ": " + $("#" + id + " .state").textContent;
	const isLoaded = () => /answers?, \d+ brands?\.$/.test($("#status").textContent);
	const isIdle = () => $("#load").ariaDisabled === "false";
	const isRejected = () => $("#key").ariaInvalid === "true";
	const everyFigure = () => !$('section[data-state="idle"], section[data-state="loading"]'); // waits for no response
	const focus = () => document.activeElement.id || document.activeElement.textContent;

	const json = (value, status = 200, headers = {}) => new Response(JSON.stringify(value), { status, headers });
	const problem = { title: "Bad", detail: "No.", code: "internal_error", request_id: "req_1", errors: [{ parameter: "from", detail: "must differ" }] };
	const invalid = () => json({ detail: "The key is not valid." }, 401);
	const answers = { ok: 0, empty: 0, truncated: 0, failed: 0, canceled: 0, pending: 0, recounting: 0, frozen: 0 };
	const metrics = (data) => json({ answers, questions: 0, runs: 0, models: [], complete: true, as_of: "2026-03-02T09:30:15.000000Z", data });
	const noAnswers = () => metrics([{ group: {}, brand_id: "brand_1", brand_name: "B", kind: "own", mentions: 0, mention_rate: { value: null, count: 0, of: 0 } }]);
	const isTotals = (a) => a.startsWith("/v1/metrics?") && !a.includes("group_by");
	// Returns a promise for the first response to an address, which late() releases, and null for others.
	const hold = (begin, a) => a.startsWith(begin) && !window.late ? new Promise((released) => window.late = () => released(null)) : null;
	const once = (f) => window.done ? null : (window.done = true, f());

	const faults = [];
	const shows = (what, got, want) => { if (String(got) !== String(want)) faults.push(what + ": " + got + ", want " + want); };
	const load = (change) => {
		window.change = change;
		$("#key").value = window.reportKey;
		$("#key").dispatchEvent(new Event("input"));
		$("#load").click();
	};
	window.states = {
		"an invalid key": async () => {
			load((a) => a === "/v1/me" ? invalid() : null);
			await until(isRejected);
			shows("the page", [focus(), $("#key-state").textContent, sent.length, $("#brands").dataset.state], "key,The key is not valid.,1,idle");
		},
		"a key that is revoked": async () => {
			load(() => null);
			await until(() => isLoaded() && isIdle());
			window.change = (a) => a.startsWith("/v1/sources") ? invalid() : null;
			$("#gap").click();
			await until(isRejected);
			shows("the figures and texts", figures() + $$("#scope, #totals, #notes").map((e) => e.textContent).join(""), "0");
		},
		"a problem": async () => {
			load((a) => a.startsWith("/v1/sources") ? json(problem, 400) : null);
			await until(() => everyFigure() && is("sources", "problem") && is("alerts", "ready") && is("by-model", "ready"));
			shows("the section", said("sources"), "problem: Bad. No. from: must differ. internal_error req_1");
			shows("the link", $("#sources .state a").getAttribute("href"), "/external-api-v1/docs#internal_error");
			await until(isIdle);
			shows("what is told", $("#status").textContent.replace(/^.* brands\./, ""), " 1 request failed.");
		},
		"no brands": async () => {
			load((a) => a.startsWith("/v1/metrics") ? metrics([]) : null);
			await until(() => everyFigure() && is("share", "empty") && is("over-time", "empty"));
			shows("brands", said("brands"), "empty: The account has no brands. Create one with POST /v1/brands; stored answers are recounted.");
			shows("share", said("share"), "empty: The account has no brands.");
		},
		"no answers": async () => {
			load((a) => a.startsWith("/v1/metrics?") ? noAnswers() : null);
			await until(() => everyFigure() && is("share", "empty") && is("brands", "empty"));
			shows("by-model", said("by-model"), "empty: No answers in this period.");
		},
		// Clear filters ends a load that still runs, and begins another one.
		"no answers with filters": async () => {
			location.hash = "#branded=true";
			await until(() => $("#branded").value === "true");
			load((a) => hold("/v1/alerts", a) ?? (a.includes("branded=true") && a.startsWith("/v1/metrics?") ? noAnswers() : null));
			await until(() => window.late && $("#share .state button"));
			$("#share .state button").click();
			await until(() => is("share", "ready") && isIdle());
			shows("after Clear filters", [location.hash, sent.filter((a) => a === "/v1/me").length, focus()], "#weeks=12,2,load");
		},
		"no connection": async () => {
			load((a) => isTotals(a) ? once(() => Promise.reject(new TypeError("Failed to fetch"))) : null);
			await until(() => is("brands", "problem") && isIdle());
			shows("brands", said("brands"), "problem: The server cannot be reached. Try again");
			$("#brands .state button").focus();
			$("#brands .state button").click();
			await until(() => everyFigure() && is("brands", "ready"));
			shows("after Try again, the focus is on", document.activeElement.textContent, "Brands");
		},
		"no connection from the start": async () => {
			load((a) => a === "/v1/me" ? Promise.reject(new TypeError("Failed to fetch")) : null);
			await until(() => is("alerts", "problem") && isIdle());
			shows("what is told", $("#status").textContent, "The server cannot be reached.");
		},
		"the limit of the minute": async () => {
			load((a) => a.startsWith("/v1/alerts") ? once(() => json({}, 429, { "Retry-After": "1" })) : null);
			await until(() => waits.length && is("alerts", "ready") && $("#waiting").hidden);
			shows("the countdown", waits.some((w) => /The limit of this minute is used\. Continues in 1 s\./.test(w)), true);
		},
		"a canceled wait": async () => {
			load((a) => a.startsWith("/v1/alerts") ? json(problem, 503, { "Retry-After": "60" }) : null);
			await until(() => !$("#waiting").hidden);
			$("#cancel").focus();
			$("#cancel").click();
			shows("after Cancel, the focus is on", focus(), "load");
			await until(() => is("alerts", "problem"));
			shows("alerts", said("alerts"), "problem: Canceled. Try again");
		},
		// Until the key is known, all sections wait, and nothing else is sent.
		"a key that is not known yet": async () => {
			load((a) => hold("/v1/me", a));
			await until(() => window.late);
			$("#gap").click();
			shows("brands and requests", said("brands") + " " + sent.length, "loading: Loading… 1");
			late();
			await until(isLoaded);
		},
		// A request that was sent again does not end the load, and its late response is dropped.
		"a late response": async () => {
			load((a) => hold("/v1/sources", a));
			await until(() => window.late);
			$("#gap").click();
			await until(() => is("sources", "ready"));
			late();
			await until(() => isLoaded() && isIdle());
			shows("sources and models", [$("#sources .request").textContent.includes("gap=true"), $("#model_id").options.length > 2], "true,true");
		},
		"a model without answers, and hostile texts": async () => {
			load(() => null);
			await until(() => isLoaded() && isIdle()); // until then, Load does nothing
			const rate = { value: null, low: null, high: null, count: 0, of: 0, low_sample: true, reason: "no_answers" };
			window.change = async (address) => {
				const value = structuredClone(responses[address]), rows = value?.data ?? [];
				for (const row of address.includes("group_by=model") ? rows.filter((r) => r.group.model_id === rows[0].group.model_id) : []) {
					rows.push({ ...row, group: { model_id: "lost" }, mention_rate: rate });
				}
				for (const row of rows) for (const name of ["brand_name", "host", "title", "message"]) if (name in row) {
					row[name] = "<img src=x onerror=alert(1)>" + "x".repeat(480) + "\u202e";
				}
				return json(value, 200, { "X-RateLimit-Remaining": "100" });
			};
			$("#load").click();
			await until(() => $('#by-model [data-model="lost"]') && $("#alerts h3")?.textContent.startsWith("<img") && isIdle());
			const marks = $$('#by-model [data-model="lost"]');
			const drawn = marks.filter((m) => !m.classList.contains("none") || m.querySelector(".interval") || !m.textContent.includes("– no answers"));
			shows("the model", [marks.length > 1, drawn.length, $("#by-model tbody tr:last-child").textContent.includes("0 of 0")], "true,0,true");
			shows("elements made from texts", $$("main img, #sources td a, #sources th a").length, 0);
		},
		"more models than the totals list": async () => {
			load(() => null);
			await until(() => isLoaded() && isIdle());
			const models = Array.from({ length: 50 }, (_, i) => ({ model_id: "m", model_version: "v" + i, answers: 1 }));
			window.change = (a) => isTotals(a) ? json({ ...responses[a], models }) : null;
			$("#load").click();
			await until(() => isLoaded() && isIdle() && $("#notes").textContent.includes("m was served in at least 50 versions;"));
			shows("the models", /by at least 1 model ·/.test($("#totals").textContent), true);
		},
		"another key": async () => {
			load(() => null);
			await until(() => isLoaded() && isIdle());
			$("#key").value = "aiv_other";
			$("#key").dispatchEvent(new Event("input"));
			shows("figures and brands", figures() + " " + $("#brands").dataset.state, "0 idle");
		},
	};
	for (const [name, run] of Object.entries(states)) states[name] = async (key) => { window.reportKey = key; await run(); return faults; };
	return Object.keys(states);
})()
