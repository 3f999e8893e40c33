// The program lists runs, creates one and reads its results, by openapi-fetch with the types that openapi-typescript generates
// from the OpenAPI document. .ci/run compiles it outside the repository and runs it against aiv demo.
import createClient from "openapi-fetch";
import type { components, paths } from "./aiv.js";

const client = createClient<paths>({
  baseUrl: process.env.BASE,
  headers: { Authorization: `Bearer ${process.env.KEY}` },
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

const refused = await client.GET("/v1/runs/{id}", { params: { path: { id: "run_00000000000000000000000000" } } });
const code: components["schemas"]["ProblemCode"] | undefined = refused.error?.code;
if (code !== "run_not_found") throw new Error(`reading an unknown run: ${code}`);
