// Compares marks, tables and labels with the responses to the addresses that the figures name.
(() => {
	const faults = [], wrong = (...text) => faults.push(text.join(" "));
	const near = (a, b, what) => { if (!(Math.abs(a - b) <= 0.5)) wrong(what, "is at", a, "want", b); };
	const addresses = (id) => [...document.querySelectorAll("#" + id + " .request code")].map((e) => e.textContent.replace("GET ", ""));
	const rowsOf = (id) => addresses(id).map((a) => responses[a] ?? wrong(id, "names", a, "which was not requested")).at(-1).data;
	const center = (e) => e.tagName === "circle" ? [+e.getAttribute("cx"), +e.getAttribute("cy")]
		: [+e.getAttribute("x") + e.getAttribute("width") / 2, +e.getAttribute("y") + e.getAttribute("height") / 2];
	const number = (e, name) => +e.getAttribute(name);
	// Numbers have four decimals at most, and are rounded half away from zero.
	const rounded = (v, digits) => (Math.floor(Math.round(v * 1e4) / 10 ** (4 - digits) + 0.5) / 10 ** digits).toFixed(digits);
	const percent = (v) => v > 0 && v < 0.01 ? "<1 %" : v > 0.99 && v < 1 ? ">99 %" : rounded(v, 2).replace(/^0\.0?|\./, "") + " %";
	const few = (v) => v.low_sample ? " few answers" : "";
	const plain = (text) => text.replaceAll("\u00a0", " ");
	const totals = rowsOf("share"), top = totals.length;
	const check = (mark, rate, what) => {
		if (!rate) return wrong(what, "has no row");
		if (mark.classList.contains("none") !== (rate.value === null)) return wrong(what, "null differs");
		if (rate.value === null) return;
		if (mark.dataset.value !== String(rate.value) || mark.dataset.low !== String(rate.low) || mark.dataset.high !== String(rate.high)) wrong(what, "differs:", mark.outerHTML.slice(0, 200), JSON.stringify(rate));
		if (mark.classList.contains("low") !== rate.low_sample) wrong(what, "low_sample differs");
		if (rate.low_sample && !mark.querySelector(".dot").classList.contains("hollow")) wrong(what, "is not hollow");
	};
	{
		const rows = rowsOf("by-model"), svg = document.querySelector("#by-model svg"), x0 = number(svg, "data-x0"), x1 = number(svg, "data-x1");
		const marks = [...svg.querySelectorAll(".mark")];
		if (marks.length !== Math.min(rows.length, 6 * 12)) wrong("by-model has", marks.length, "marks of", rows.length);
		for (const m of marks) {
			const rate = rows.find((r) => r.brand_id === m.dataset.brand && r.group.model_id === m.dataset.model)?.mention_rate, what = m.dataset.model + " " + m.dataset.brand;
			check(m, rate, what);
			if (rate.value === null) continue;
			near(center(m.querySelector(".dot"))[0], x0 + rate.value * (x1 - x0), what);
			near(number(m.querySelector(".interval"), "x1"), x0 + rate.low * (x1 - x0), what + " low");
			near(number(m.querySelector(".interval"), "x2"), x0 + rate.high * (x1 - x0), what + " high");
			if (!plain(m.textContent).includes(percent(rate.value))) wrong(what, "has the label", m.textContent);
		}
		const cells = [...document.querySelectorAll("#by-model tbody tr")];
		if (cells.length !== marks.length) wrong("the table of by-model has", cells.length, "rows");
		cells.forEach((tr, i) => {
			const rate = rows.find((r) => r.brand_id === marks[i].dataset.brand && r.group.model_id === marks[i].dataset.model).mention_rate;
			const td = [...tr.children].map((c) => plain(c.textContent));
			const want = rate.value === null ? "–" : (+rounded(rate.value, 3) * 100).toFixed(1) + " %";
			if (td[2] !== want || td[5] !== rate.count + " of " + rate.of) wrong("row", i, td.join("|"), JSON.stringify(rate));
		});
	}
	{
		const address = addresses("over-time").at(-1), unit = new URLSearchParams(address.split("?")[1]).get("group_by"), rows = responses[address].data;
		for (const panel of document.querySelectorAll("#over-time .panel")) {
			const y0 = number(panel, "data-y0"), y1 = number(panel, "data-y1");
			let before = null;
			const steps = [];
			for (const m of panel.querySelectorAll(".mark")) {
				const rate = rows.find((r) => r.brand_id === m.dataset.brand && r.group[unit] === m.dataset.bucket)?.mention_rate ?? { value: null };
				check(m, rate, m.dataset.bucket + " " + m.dataset.brand);
				if (rate.value === null) { before = null; continue; }
				const [x, y] = center(m.querySelector(".dot"));
				near(y, y0 + rate.value * (y1 - y0), m.dataset.bucket);
				near(number(m.querySelector(".interval"), "y1"), y0 + rate.low * (y1 - y0), m.dataset.bucket + " low");
				if (before !== null) steps.push(x - before);
				before = x;
			}
			if (Math.max(...steps) - Math.min(...steps) > 0.5) wrong("the buckets are not at equal distance:", steps.join());
			if (rows.some((r) => r.brand_id === panel.dataset.brand && !panel.querySelector('[data-bucket="' + r.group[unit] + '"]'))) wrong("a bucket is not drawn");
		}
		if (document.querySelectorAll("#over-time .panel").length !== Math.min(6, top)) wrong("panels are missing");
	}
	{
		const svg = document.querySelector("#share svg"), x0 = number(svg, "data-x0"), x1 = number(svg, "data-x1"), max = number(svg, "data-max");
		for (const m of svg.querySelectorAll(".mark")) {
			const share = totals.find((r) => r.brand_id === m.dataset.brand).share_of_voice, bar = m.querySelector(".bar");
			if (m.dataset.value !== String(share.value)) wrong("share of", m.dataset.brand, "is", m.dataset.value);
			near(number(bar, "x"), x0, "a bar");
			near(number(bar, "x") + number(bar, "width"), x0 + share.value / max * (x1 - x0), "the end of a bar");
		}
	}
	{
		const [a, b] = addresses("brands"), changes = responses[b].data;
		const trs = [...document.querySelectorAll("#brands tbody tr")];
		const want = responses[a].data.toSorted((x, y) => (y.kind === "own") - (x.kind === "own") || y.mention_rate.count - x.mention_rate.count || (x.brand_name < y.brand_name ? -1 : 1));
		if (trs.length !== want.length) wrong("brands has", trs.length, "rows");
		trs.forEach((tr, i) => {
			const r = want[i], td = [...tr.children].map((c) => plain(c.textContent)), c = changes.find((x) => x.brand_id === r.brand_id).mention_rate;
			const rate = (v) => percent(v.value) + " " + percent(v.low).replace(" %", "") + "–" + percent(v.high) + few(v);
			const change = c.verdict === "no_clear_change" ? "– no clear change" : c.verdict === "not_comparable" ? "not comparable" : c.verdict;
			const got = [td[1], td[3], td[4], td[5], td[6], td[7]].join("|");
			const expected = [rate(r.mention_rate), rate(r.citation_rate), percent(r.share_of_voice.value), percent(r.first_rate.value) + few(r.first_rate), rounded(r.position.value, 1), String(r.mention_rate.count)].join("|");
			if (got !== expected || !td[2].includes(change) || !td[0].includes(r.brand_name)) wrong("brand", i, got, "want", expected, td[2], change);
		});
	}
	{
		const rows = addresses("sources").flatMap((a) => responses[a].data);
		const trs = [...document.querySelectorAll("#sources tbody tr")];
		if (trs.length !== rows.length) wrong("sources has", trs.length, "rows of", rows.length);
		trs.forEach((tr, i) => {
			const td = [...tr.children].map((c) => plain(c.textContent).trim());
			if (td[0] !== rows[i].host || td[2] !== String(rows[i].answers) || td[3] !== percent(rows[i].citation_share.value)) wrong("source", i, td.join("|"));
		});
		for (const a of document.querySelectorAll("#sources a")) if (a.rel !== "noopener noreferrer nofollow") wrong("a link has rel", a.rel);
	}
	const open = rowsOf("alerts");
	[...document.querySelectorAll("#alerts li")].forEach((li, i) => { if (!li.textContent.includes(open[i].title) || !li.textContent.includes(open[i].message)) wrong("alert", i); });
	for (const svg of document.querySelectorAll("main svg[role=img]")) if (!svg.querySelector(":scope > title").textContent || !/^(Highest|No)/.test(svg.querySelector("desc").textContent)) wrong("a figure has no title or no description");
	return faults;
})()
