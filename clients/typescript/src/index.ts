/** A lake behind a service: scans, SQL, and version 3 of the API with the types of OpenAPI. */

import { RecordBatchReader, Table, tableFromIPC } from "apache-arrow";
import type { RecordBatch } from "apache-arrow";
import createClient from "openapi-fetch";
import type { Client } from "openapi-fetch";
import type { paths } from "./api.js";

type ScanBody = paths["/api/scan"]["post"]["requestBody"]["content"]["application/json"];

/** The fields of `POST /api/scan`: `table`, or `tables`, and others that may be left out. */
export type Scan = Partial<Omit<ScanBody, "tables">> & {
  tables?: Record<string, Partial<NonNullable<ScanBody["tables"]>[string]>>;
};

/** All rows of the masterchain blocks behind the batch before, up to block `height`. */
export interface Batch {
  rows: Table;
  /** A scan with this cursor resumes after the batch. */
  cursor: string;
  height: number;
  /**
   * First and last of blocks that are no part of the chain any more. The batch has no rows then:
   * drop those of these blocks; the blocks in their place follow.
   */
  undone?: [first: number, last: number];
  /** How many bodies were read for the batch that do not fit their signature, by its table. */
  misfits?: Record<string, number>;
}

/** How a service is reached. */
export interface Options {
  /** An API key of the service. */
  key?: string;
  /** How often in a row a scan is begun again behind its last batch; 5 by default. */
  retries?: number;
}

/** What a service refuses: the status of HTTP, and its words. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
    this.name = "Refusal";
  }
}

const ARROW = "application/vnd.apache.arrow.stream";
const FIRST_PAUSE_MS = 200;

/** A lake behind a service. */
export class Lake {
  /** Version 2 and 3 of the API: `lake.api.GET("/api/v3/blocks", …)`. */
  readonly api: Client<paths>;
  readonly #headers: Record<string, string>;
  readonly #retries: number;

  constructor(
    readonly url: string,
    options: Options = {},
  ) {
    this.#headers = options.key === undefined ? {} : { "X-API-Key": options.key };
    this.#retries = options.retries ?? 5;
    this.api = createClient<paths>({ baseUrl: url, headers: this.#headers });
  }

  /**
   * Answer a read-only statement of DuckDB; the service needs `[sql] enabled`. The messages that
   * follow a signature are a table.
   */
  async sql(query: string, signature: string[] = []): Promise<Table> {
    const answer = await this.#post("/sql", { query, signature });
    return tableFromIPC(new Uint8Array(await answer.arrayBuffer()));
  }

  /**
   * Yield rows of a table in chain order, batch by batch.
   *
   * A connection that breaks is opened again, and the scan resumes after its last batch. With
   * `follow` it ends when the caller leaves the loop.
   */
  async *scan(scan: Scan): AsyncGenerator<Batch, void, undefined> {
    let rest: Scan = scan;
    let failures = 0;
    for (;;) {
      try {
        for await (const batch of this.#read(rest)) {
          failures = 0;
          const { from: _from, ...others } = rest;
          rest = { ...others, cursor: batch.cursor };
          yield batch;
          if (typeof rest.limit === "number") {
            if (rest.limit <= batch.rows.numRows) return;
            rest.limit -= batch.rows.numRows;
          }
        }
        if (!scan.follow) return;
      } catch (error) {
        failures += 1;
        if (error instanceof Refusal || failures > this.#retries) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, FIRST_PAUSE_MS * 2 ** failures));
    }
  }

  async *#read(scan: Scan): AsyncGenerator<Batch, void, undefined> {
    const stop = new AbortController();
    try {
      const answer = await this.#post("/api/scan", scan, stop.signal);
      if (answer.body === null) throw new TypeError("the answer has no body");
      const reader = await RecordBatchReader.from(answer.body);
      let parts: RecordBatch[] = [];
      for await (const part of reader) {
        parts.push(part);
        const cursor = part.metadata.get("cursor");
        if (cursor === undefined) continue; // the rest of the batch follows
        yield readBatch(new Table(parts), cursor, part.metadata);
        parts = [];
      }
    } finally {
      stop.abort();
    }
  }

  async #post(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
    const answer = await fetch(new URL(path, this.url), {
      method: "POST",
      headers: { ...this.#headers, Accept: ARROW, "Content-Type": "application/json" },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
    if (!answer.ok) throw new Refusal(answer.status, await readError(answer));
    return answer;
  }
}

/** Return the lake of a service, such as `https://lake.example.org`; nothing is asked yet. */
export function connect(url: string, options: Options = {}): Lake {
  return new Lake(url, options);
}

function readBatch(rows: Table, cursor: string, metadata: Map<string, string>): Batch {
  const batch: Batch = { rows, cursor, height: Number(metadata.get("height")) };
  const [first, last] = metadata.get("undone")?.split("-").map(Number) ?? [];
  if (first !== undefined && last !== undefined) batch.undone = [first, last];
  const misfits = metadata.get("misfits");
  if (misfits !== undefined) batch.misfits = JSON.parse(misfits) as Record<string, number>;
  return batch;
}

async function readError(answer: Response): Promise<string> {
  const text = await answer.text();
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === "string" ? error : text;
  } catch {
    return text;
  }
}
