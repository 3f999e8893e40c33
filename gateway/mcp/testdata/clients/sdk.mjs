// Uses the tools with a client of the TypeScript SDK: node sdk.mjs 1|2. BASE and KEY are those of a started server with sample data.
import assert from "node:assert/strict";

const { BASE, KEY } = process.env;
const version = process.argv[2];
const { Client, StreamableHTTPClientTransport } = version === "2"
  ? await import("@modelcontextprotocol/client")
  : { ...await import("@modelcontextprotocol/sdk/client/index.js"), ...await import("@modelcontextprotocol/sdk/client/streamableHttp.js") };
const headers = { Authorization: `Bearer ${KEY}` };
const transport = () => new StreamableHTTPClientTransport(new URL(BASE + "/mcp"), { requestInit: { headers } });
const read = async (address) => (await fetch(BASE + address, { headers })).json();

async function use(options, revision) {
  const client = new Client({ name: "ci", version: "1" }, options);
  await client.connect(transport());
  if (revision) assert.equal(client.getNegotiatedProtocolVersion(), revision);
  assert.match(client.getInstructions(), /who_am_i/);
  const { tools } = await client.listTools();
  assert.ok(tools.length >= 15, `${tools.length} tools`);
  const call = async (name, args = {}) => {
    const result = await client.callTool({ name, arguments: args });
    assert.deepEqual(JSON.parse(result.content[0].text), result.isError ? JSON.parse(result.content[0].text) : result.structuredContent);
    return result;
  };
  const { structuredContent: page } = await call("list_runs", { limit: 2 });
  assert.deepEqual(page, await read("/v1/runs?limit=2"));
  const run = page.data[1].id;
  const pairs = {
    who_am_i: [{}, "/v1/me"], get_usage: [{}, "/v1/usage"], list_models: [{ limit: 3 }, "/v1/catalog/models?limit=3"],
    list_questions: [{ topic: "sport" }, "/v1/catalog/questions?topic=sport&limit=20"], list_brands: [{}, "/v1/brands?limit=20"],
    get_run: [{ run_id: run }, `/v1/runs/${run}`], list_sources: [{ run_id: run, limit: 5 }, `/v1/sources?run_id=${run}&limit=5`],
    list_recommendations: [{ priority: "high" }, "/v1/recommendations?priority=high&limit=20"], list_alerts: [{ status: "open" }, "/v1/alerts?status=open&limit=20"],
  };
  for (const [name, [args, address]] of Object.entries(pairs)) assert.deepEqual((await call(name, args)).structuredContent, await read(address), name);
  const metrics = (await call("query_metrics", { run_id: run, group_by: ["model"] })).structuredContent;
  assert.deepEqual(metrics.data, (await read(`/v1/metrics?run_id=${run}&group_by=model`)).data);
  const wrong = await call("list_runs", { limit: 500 });
  assert.equal(wrong.isError, true);
  assert.equal(JSON.parse(wrong.content[0].text).errors[0].pointer, "#/arguments/limit");
  await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }));
  const order = { measurement_type: "grounded", model_ids: ["openai/gpt-5-search"], question_ids: ["it-running-shoes"], repetitions: 1,
    locale: "it-IT", country: "IT", language: "it", idempotency_key: `ci-${version}-${revision}-${process.pid}` };
  const made = (await call("create_run", order)).structuredContent;
  assert.deepEqual((await call("create_run", order)).structuredContent, made);
  assert.ok((await call("cancel_run", { run_id: made.id })).structuredContent.total_jobs === 1);
  await client.close();
}

if (version === "2") {
  await use({ versionNegotiation: { mode: { pin: "2026-07-28" } } }, "2026-07-28");
  await use({ versionNegotiation: { mode: "auto" } }, "2026-07-28");
  await use({ versionNegotiation: { mode: "legacy" } }, "2025-11-25");
} else {
  await use({});
}
await assert.rejects(new Client({ name: "ci", version: "1" }).connect(new StreamableHTTPClientTransport(new URL(BASE + "/mcp"))));
console.log(`the SDK of version ${version} works`);
