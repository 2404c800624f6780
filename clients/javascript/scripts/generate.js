// Writes src/schema.ts, the types of requests and answers, from the API's document.
//
//   node scripts/generate.js           writes it
//   node scripts/generate.js --check   fails if what is committed is not what would be written
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const DOCUMENT = new URL("../../../docs/openapi.json", import.meta.url);
const TARGET = new URL("../src/schema.ts", import.meta.url);
const HEADER = `// Types of requests and answers, made from docs/openapi.json by \`npm run generate\`.
// Not edited by hand: a test fails where this file and the document part ways.

`;

/** What clients send. An unknown value there is a mistake; in an answer it means a newer server. */
const SENT =
  /(Request|Change|Definition|Step|Record|Registration|SignIn|Verification|Call|Fix|Pause)$/;

/** An enumeration in an answer stays open, so that a value added later does not break its reader. */
function openEnum(schema, { path }) {
  const name = /#\/components\/schemas\/([^/]+)/.exec(path ?? "")?.[1];
  if (
    !schema.enum ||
    schema.type !== "string" ||
    !name ||
    (SENT.test(name) && name !== "RunStep")
  ) {
    return undefined;
  }
  const known = schema.enum.map((value) =>
    ts.factory.createLiteralTypeNode(ts.factory.createStringLiteral(value)),
  );
  const others = ts.factory.createParenthesizedType(
    ts.factory.createIntersectionTypeNode([
      ts.factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword),
      ts.factory.createTypeLiteralNode([]),
    ]),
  );
  return ts.factory.createUnionTypeNode([...known, others]);
}

/** The text of src/schema.ts. */
export async function generate() {
  const document = JSON.parse(await readFile(DOCUMENT, "utf8"));
  const { components } = document;
  // Only the schemas are used: methods are written by hand, over these types.
  const types = await openapiTS(
    { ...document, paths: {}, components: { schemas: components.schemas } },
    {
      transform: openEnum,
      defaultNonNullable: false,
      emptyObjectsUnknown: true,
      rootTypes: true,
      rootTypesNoSchemaPrefix: true,
      rootTypesKeepCasing: true,
    },
  );
  const text = astToString(types);
  const schemas = /export interface components \{[\s\S]*?\n\}\n/.exec(text)?.[0];
  const names = text.match(/^export type \w+ = components\['schemas'\]\['\w+'\];$/gm);
  if (!schemas || !names) {
    throw new Error("the generator wrote no schemas");
  }
  return `${HEADER}${schemas}\n${names.join("\n")}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = await generate();
  if (!process.argv.includes("--check")) {
    await writeFile(TARGET, text);
  } else if ((await readFile(TARGET, "utf8")) !== text) {
    console.error("src/schema.ts is stale: run `npm run generate`");
    process.exit(1);
  }
}
