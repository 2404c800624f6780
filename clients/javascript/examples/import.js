// Imports leads from NDJSON on stdin; refused lines go to stderr.
//   WAYPOST_URL=… WAYPOST_KEY=… node examples/import.js < leads.ndjson
import { createInterface } from "node:readline";
import { waypost as connect } from "./connect.js";

const waypost = await connect();

async function* records() {
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim()) {
      yield JSON.parse(line);
    }
  }
}

const counts = { created: 0, updated: 0, unchanged: 0, refused: 0 };
for await (const outcome of waypost.leads.import(records())) {
  if ("error" in outcome) {
    counts.refused += 1;
    console.error(`line ${outcome.line}: ${outcome.error}`);
  } else {
    counts[outcome.status] += 1;
  }
}
console.log(JSON.stringify(counts));
