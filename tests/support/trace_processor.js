// Perfetto's trace processor, out of a copy of its user interface, as a server on a Unix socket.
// Called with the interface's folder and the socket's path; prints a line when it listens.
const fs = require("fs"), net = require("net"), path = require("path"), vm = require("vm");

const [folder, address] = process.argv.slice(2);
let client = null;

// What the interface's worker loads its WebAssembly with.
class XMLHttpRequest {
  open(method, url) {
    this.response = fs.readFileSync(path.join(folder, path.basename(url)));
  }
  send() {}
}

const worker = {location: {href: "http://localhost/engine_bundle.js"}};
const port = {postMessage: (answer) => client?.write(answer)};
// Without `process` it takes this for the worker that it is made for.
vm.compileFunction(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"),
                   ["self", "XMLHttpRequest", "WorkerGlobalScope", "process"])(
    worker, XMLHttpRequest, class {}, undefined);
worker.onmessage({data: port});

net.createServer((connection) => {
  client = connection;
  connection.on("data", (request) => port.onmessage({data: new Uint8Array(request)}));
}).listen(address, () => console.log("listening"));
