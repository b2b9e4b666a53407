// Asks the search of a built site: node check_search.js SITE, a query a line on the standard input.
// Prints where each query's first result leads. Runs the theme's own worker, as a browser would.
const fs = require("fs"), path = require("path"), vm = require("vm");

const site = process.argv[2];
const workers = path.join(site, "assets/javascripts/workers");
const worker = fs.readdirSync(workers).find(name => /^search\..*\.js$/.test(name));
const READY = 0, QUERY = 2;      // the kinds of messages that the worker takes
let handle, settle;
global.self = global;
global.addEventListener = (_, handler) => { handle = handler; };
global.postMessage = message => settle(message);
vm.runInThisContext(fs.readFileSync(path.join(workers, worker), "utf8"));
const ask = message => new Promise(resolve => { settle = resolve; handle({data: message}); });

(async () => {
  const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf8"));
  await ask({type: READY, data: {...index, options: {suggest: true}}});
  for (const query of fs.readFileSync(0, "utf8").split("\n")) {
    const answer = await ask({type: QUERY, data: query});
    const first = (answer.data.items[0] || [])[0];
    console.log(first ? first.location : "");
  }
})();
