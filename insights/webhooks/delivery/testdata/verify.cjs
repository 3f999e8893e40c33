// Verifies deliveries, a JSON array on standard input, with the package standardwebhooks in a folder of node modules.
const { Webhook } = require(require.resolve("standardwebhooks", { paths: [process.argv[2]] }));

const deliveries = JSON.parse(require("fs").readFileSync(0, "utf8"));
for (const { name, secret, headers, body, valid } of deliveries) {
  let error = null;
  try {
    new Webhook(secret).verify(body, headers);
  } catch (e) {
    error = e;
  }
  if ((error === null) !== valid) throw new Error(`${name}: ${error}, want valid: ${valid}`);
}
console.log(`${deliveries.length} deliveries`);
