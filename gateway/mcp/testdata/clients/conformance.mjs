// Compares the results of the protocol's conformance suite with expected.txt: node conformance.mjs FOLDER…
// The scenarios that fail need tools with certain names, or features that the server does not have on purpose.
import fs from "node:fs";

const failed = new Set();
let passed = 0;
for (const folder of process.argv.slice(2)) {
  for (const run of fs.readdirSync(folder)) {
    const scenario = run.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    for (const { id, status } of JSON.parse(fs.readFileSync(`${folder}/${run}/checks.json`))) {
      if (status === "SUCCESS") passed++;
      if (status === "FAILURE") failed.add(`${scenario}/${id}`);
    }
  }
}
const lines = fs.readFileSync(new URL("expected.txt", import.meta.url), "utf8").split("\n");
const expected = new Set(lines.filter((line) => line && !line.startsWith("#")));
const wrong = [...failed].filter((id) => !expected.has(id)).map((id) => `fails: ${id}`)
  .concat([...expected].filter((id) => !failed.has(id)).map((id) => `no longer fails: ${id}`));
if (wrong.length > 0 || passed < 100) {
  console.error(`${passed} checks passed\n${wrong.join("\n")}`);
  process.exit(1);
}
console.log(`${passed} checks passed; ${failed.size} need other tools or features`);
