// A client of version 3 whose types openapi-typescript made of the served OpenAPI document.
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const plan = JSON.parse(readFileSync(0, "utf8")) as { origin: string; address: string };
const client = createClient<paths>({ baseUrl: plan.origin });

const info = await client.GET("/api/v3/masterchainInfo");
const blocks = await client.GET("/api/v3/blocks", {
  params: { query: { limit: 3, workchain: -1 } },
});
const actions = await client.GET("/api/v3/actions", {
  params: { query: { action_type: ["jetton_transfer"], limit: 2, include_transactions: true } },
});
const transactions = await client.GET("/api/v3/transactions", {
  params: { query: { limit: 2, sort: "desc" } },
});
const refused = await client.GET("/api/v3/transactions", { params: { query: { hash: ["zz"] } } });
const run = await client.POST("/api/v3/decode", { body: { opcodes: ["0x0f8a7ea5"] } });
const balance = await client.GET("/api/v2/getAddressBalance", {
  params: { query: { address: plan.address } },
});

console.log(
  JSON.stringify({
    last: info.data?.last.seqno,
    blocks: blocks.data?.blocks.map((block) => block.seqno),
    actions: actions.data?.actions.map((action) => action.type),
    accounts: transactions.data?.transactions.map((each) => each.account),
    refused: refused.error?.error,
    decoded: run.data,
    balance: balance.data?.result,
  }),
);
