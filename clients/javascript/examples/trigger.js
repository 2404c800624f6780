// Starts a run and waits for its end over a socket.
//   WAYPOST_URL=… WAYPOST_KEY=… node examples/trigger.js say-hello Ada
import { waypost as connect } from "./connect.js";

const waypost = await connect();
const [workflow = "say-hello", name = "Ada"] = process.argv.slice(2);

const socket = waypost.socket();
for await (const item of socket.subscribe("runs")) {
  if (item.kind === "snapshot") {
    // Subscribed: from here on nothing is missed.
    const { runId } = await waypost.workflows.trigger(workflow, { name });
    console.log(`run ${runId} of ${workflow}`);
  } else if (item.kind === "event") {
    console.log(item.type, item.data.stepId ?? "");
    if (["run.succeeded", "run.failed", "run.cancelled"].includes(item.type)) {
      break;
    }
  }
}
