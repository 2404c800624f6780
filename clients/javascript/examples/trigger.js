// Starts a run and waits for its end over a socket.
//   WAYPOST_URL=… WAYPOST_KEY=… node examples/trigger.js say-hello Ada
import { waypost as connect } from "./connect.js";

const waypost = await connect();
const [workflow = "say-hello", name = "Ada"] = process.argv.slice(2);

const socket = waypost.socket();
for await (const told of socket.subscribe("runs")) {
  if (told.kind === "snapshot") {
    // Subscribed: from here on nothing is missed.
    const { runId } = await waypost.workflows.trigger(workflow, { name });
    console.log(`run ${runId} of ${workflow}`);
  } else if (told.kind === "event") {
    console.log(told.type, told.data.stepId ?? "");
    if (["run.succeeded", "run.failed", "run.cancelled"].includes(told.type)) {
      break;
    }
  }
}
