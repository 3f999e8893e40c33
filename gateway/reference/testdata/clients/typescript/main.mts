// The program lists runs, creates one and reads its results and metrics, by openapi-fetch with the types that openapi-typescript generates
// from the OpenAPI document. .ci/run compiles it outside the repository and runs it against aiv demo.
import createClient from "openapi-fetch";
import type { components, paths } from "./aiv.js";

const client = createClient<paths>({
  baseUrl: process.env.BASE,
  headers: { Authorization: `Bearer ${process.env.KEY}` },
  querySerializer: { array: { style: "form", explode: false } }, // lists are separated by commas
});

const listed = await client.GET("/v1/runs", { params: { query: { limit: 2 } } });
if (listed.data?.data.length !== 2) throw new Error(`listing runs: ${JSON.stringify(listed.error)}`);

const created = await client.POST("/v1/runs", {
  params: { header: { "Idempotency-Key": crypto.randomUUID() } },
  body: {
    model_ids: ["openai/gpt-5-search"], question_ids: ["it-running-shoes"], repetitions: 2,
    measurement_type: "grounded", locale: "it-IT", country: "IT", language: "it",
  },
});
if (!created.data) throw new Error(`creating a run: ${JSON.stringify(created.error)}`);

const path = { id: created.data.id };
let status: components["schemas"]["RunStatus"] = created.data.status;
for (const end = Date.now() + 60_000; status !== "completed"; ) {
  if (Date.now() > end) throw new Error(`${path.id} is ${status}`);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const read = await client.GET("/v1/runs/{id}", { params: { path } });
  if (!read.data) throw new Error(`reading ${path.id}: ${JSON.stringify(read.error)}`);
  status = read.data.status;
}

const results = await client.GET("/v1/runs/{id}/results", { params: { path } });
if (results.data?.data.length !== 2) throw new Error(`listing the results: ${JSON.stringify(results.error)}`);
for (const { id, model_id, question_id, answer } of results.data.data) {
  if (answer === null) throw new Error(`${id} has no answer`);
  console.log(`${model_id} answers ${question_id} with ${answer.citations.length} citations`);
}

const query = { run_id: path.id, group_by: ["model", "topic"] satisfies components["schemas"]["Dimension"][] };
const metrics = await client.GET("/v1/metrics", { params: { query } });
if (typeof metrics.data !== "object" || !metrics.data.complete || metrics.data.answers.ok !== 2 || metrics.data.from !== null) {
  throw new Error(`reading the metrics of ${path.id}: ${JSON.stringify(metrics.error ?? metrics.data)}`);
}
const table = await client.GET("/v1/metrics", { params: { query }, headers: { Accept: "text/csv" }, parseAs: "text" });
if (!table.data?.startsWith("model_id,topic,brand_id,")) throw new Error(`reading the metrics of ${path.id} as CSV: ${table.data}`);

const refused = await client.GET("/v1/runs/{id}", { params: { path: { id: "run_00000000000000000000000000" } } });
const code: components["schemas"]["ProblemCode"] | undefined = refused.error?.code;
if (code !== "run_not_found") throw new Error(`reading an unknown run: ${code}`);
