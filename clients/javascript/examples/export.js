// Writes all companies to a file, and shows the progress.
//   WAYPOST_URL=… WAYPOST_KEY=… node examples/export.js companies.csv
import { saveExport } from "@waypost/client/node";
import { waypost as connect } from "./connect.js";

const waypost = await connect();
const [path = "companies.csv"] = process.argv.slice(2);
const formats = { xlsx: "excel", pdf: "pdf" };

const file = waypost.companies.export({
  format: formats[path.split(".").at(-1)] ?? "csv",
  onProgress: ({ received }) => process.stderr.write(`\r${received} bytes`),
});
const bytes = await saveExport(file, path);
console.log(`\n${path}: ${bytes} bytes`);
