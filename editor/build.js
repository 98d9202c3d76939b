// Bundles editor.js with the packages of package-lock.json: node build.js FILE. The licences of the
// packages stand at the top of the file.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const target = process.argv[2];
const result = await build({
  entryPoints: ["editor.js"],
  bundle: true,
  format: "iife",
  globalName: "tonlakeEditor",
  legalComments: "none",
  metafile: true,
  minify: true,
  target: "es2022",
  write: false,
});
const names = new Set();
for (const path of Object.keys(result.metafile.inputs)) {
  const match = path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (match) names.add(match[1]);
}
const packages = new Map();
for (const name of [...names].sort()) {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  const licence = readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim();
  packages.set(licence, [...(packages.get(licence) ?? []), `${name} ${version}`]);
}
const notices = [...packages].map(([licence, names]) => `${names.join(", ")}\n\n${licence}`);
writeFileSync(target, `/*! ${notices.join("\n\n\n")}\n*/\n${result.outputFiles[0].text}`);
