// Adds the API key to requests: the conformance suite sends none. It prints its address. Usage: BASE=… KEY=… node proxy.mjs
import http from "node:http";

const to = new URL(process.env.BASE + "/mcp");
http.createServer((from, answer) => {
  const { host, ...headers } = from.headers;
  // The server must see the Host that the client sent: it compares the Origin with it.
  const request = http.request(to, { method: from.method, headers: { ...headers, host, authorization: `Bearer ${process.env.KEY}` } }, (response) => {
    answer.writeHead(response.statusCode, response.headers);
    response.pipe(answer);
  });
  request.on("error", () => answer.destroy());
  from.pipe(request);
}).listen(0, "127.0.0.1", function () { console.log(`http://localhost:${this.address().port}/mcp`); });
