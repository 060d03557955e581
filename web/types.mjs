// Writes src/lib/generated.ts, the types of the responses, from openapi.json. `--check` compares instead.

import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const input = fileURLToPath(new URL("openapi.json", import.meta.url));
const output = fileURLToPath(new URL("src/lib/generated.ts", import.meta.url));

const union = (types) => [...new Set(types)].join(" | ");
const inList = (type) => (/[|&]/.test(type) ? `(${type})` : type);

/** The type of a schema. */
function typeOf(schema) {
  if (schema === true || schema === undefined) {
    return "unknown";
  }
  if (schema.$ref !== undefined) {
    return schema.$ref.split("/").at(-1);
  }
  if (schema.const !== undefined) {
    return JSON.stringify(schema.const);
  }
  if (schema.enum !== undefined) {
    return union(schema.enum.map((value) => JSON.stringify(value)));
  }
  const several = schema.anyOf ?? schema.oneOf;
  if (several !== undefined) {
    return union(several.map(typeOf));
  }
  if (schema.allOf !== undefined) {
    return schema.allOf.map((part) => inList(typeOf(part))).join(" & ");
  }
  if (Array.isArray(schema.type)) {
    return union(schema.type.map((type) => typeOf({ ...schema, type })));
  }
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array": {
      const items = typeOf(schema.items);
      const isTuple = schema.minItems !== undefined && schema.minItems === schema.maxItems && schema.minItems < 8;
      return isTuple ? `[${Array.from({ length: schema.minItems }, () => items).join(", ")}]` : `${inList(items)}[]`;
    }
    case "object":
      if (schema.properties !== undefined) {
        return `{ ${properties(schema).join(" ")} }`;
      }
      return `Record<string, ${typeOf(schema.additionalProperties)}>`;
    default:
      return "unknown";
  }
}

function properties(schema) {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties).map(([name, type]) => `${/^\w+$/.test(name) ? name : JSON.stringify(name)}${required.has(name) ? "" : "?"}: ${typeOf(type)};`);
}

const comment = (schema) => (schema.description === undefined ? [] : [`/** ${schema.description.replaceAll("\n", " ").replaceAll("*/", "* /")} */`]);

function declaration([name, schema]) {
  if (schema.type !== "object" || schema.properties === undefined) {
    return [...comment(schema), `export type ${name} = ${typeOf(schema)};`, ""];
  }
  const lines = Object.entries(schema.properties).map(([property, type], i) => [...comment(type), properties(schema)[i]].map((line) => `  ${line}`));
  return [...comment(schema), `export interface ${name} {`, ...lines.flat(), "}", ""];
}

const { components } = JSON.parse(await readFile(input, "utf8"));
const schemas = Object.entries(components.schemas).toSorted(([one], [other]) => (one < other ? -1 : 1));
const text = ["// The responses of the server: written by types.mjs from openapi.json.", "", ...schemas.flatMap(declaration)].join("\n");

if (process.argv.includes("--check")) {
  if ((await readFile(output, "utf8")) !== text) {
    console.error("src/lib/generated.ts is not what openapi.json describes: run `node types.mjs`");
    process.exitCode = 1;
  }
} else {
  await writeFile(output, text);
}
