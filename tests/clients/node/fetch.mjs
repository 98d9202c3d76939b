// Asks for the paths on stdin with fetch of node; prints status, coding and a digest of each body.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const plan = JSON.parse(readFileSync(0, "utf8"));
const found = [];
for (const path of plan.paths) {
  const first = await fetch(plan.url + path);
  const body = Buffer.from(await first.arrayBuffer());
  const tag = first.headers.get("etag");
  const again = await fetch(plan.url + path, {
    headers: tag ? { "If-None-Match": tag } : {},
    cache: "no-store",
  });
  found.push({
    status: first.status,
    coding: first.headers.get("content-encoding"),
    sha256: createHash("sha256").update(body).digest("hex"),
    again: again.status,
    bytes: (await again.arrayBuffer()).byteLength,
  });
}
console.log(JSON.stringify(found));
