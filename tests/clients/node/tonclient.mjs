// Asks the TonClient of @ton/ton what the plan on stdin lists; prints the answers as JSON.
// Plan: { endpoint, accounts: [address], pages: [{address, limit}], seqnos: [n], messages: [...] }
import { readFileSync } from "node:fs";
import { Address, beginCell } from "@ton/core";
import { TonClient } from "@ton/ton";

const plan = JSON.parse(readFileSync(0, "utf8"));
const client = new TonClient({ endpoint: plan.endpoint });
const id = (tx) => [tx.lt.toString(), tx.hash().toString("hex")];

async function readState(text) {
  const state = await client.getContractState(Address.parse(text));
  return {
    balance: (await client.getBalance(Address.parse(text))).toString(),
    state: state.state,
    deployed: await client.isContractDeployed(Address.parse(text)),
    code: state.code && state.code.toString("base64"),
    data: state.data && state.data.toString("base64"),
    last: state.lastTransaction,
    seqno: state.blockId.seqno,
  };
}

async function readHistory({ address, limit }) {
  const account = Address.parse(address);
  const found = await client.getTransactions(account, { limit });
  for (;;) {
    const last = found[found.length - 1];
    const page = await client.getTransactions(account, {
      limit,
      lt: last.lt.toString(),
      hash: last.hash().toString("base64"),
    });
    if (page.length === 0) return found.map(id);
    found.push(...page);
  }
}

async function readBlock(seqno) {
  const shards = await client.getWorkchainShards(seqno);
  const blocks = [{ workchain: -1, shard: "-9223372036854775808", seqno }, ...shards];
  const transactions = [];
  for (const { workchain, shard, seqno: number } of blocks.filter((block) => block.seqno > 0)) {
    for (const tx of await client.getShardTransactions(workchain, number, shard)) {
      transactions.push([tx.account.toRawString(), tx.lt, tx.hash]);
    }
  }
  return { shards, transactions };
}

async function locate({ source, destination, created_lt }) {
  const ends = [Address.parse(source), Address.parse(destination), created_lt];
  return {
    result: id(await client.tryLocateResultTx(...ends)),
    source: id(await client.tryLocateSourceTx(...ends)),
  };
}

async function findOne({ address, lt, hash }) {
  const tx = await client.getTransaction(Address.parse(address), lt, hash);
  return tx && id(tx);
}

async function runMethod({ address, method, owner, index }) {
  const args = [];
  if (owner) args.push({ type: "slice", cell: beginCell().storeAddress(Address.parse(owner)).endCell() });
  if (index !== undefined) args.push({ type: "int", value: BigInt(index) });
  const { stack } = await client.runMethod(Address.parse(address), method, args);
  const found = [];
  while (stack.remaining) {
    const item = stack.pop();
    const cell = item.cell && item.cell.hash().toString("hex");
    found.push(cell || (item.type === "int" ? item.value.toString() : item.type));
  }
  return found;
}

async function each(items, ask) {
  const answers = [];
  for (const item of items) answers.push(await ask(item));
  return answers;
}

console.log(
  JSON.stringify({
    info: await client.getMasterchainInfo(),
    states: await each(plan.accounts, readState),
    histories: await each(plan.pages, readHistory),
    blocks: await each(plan.seqnos, readBlock),
    located: await each(plan.messages, locate),
    methods: await each(plan.methods, runMethod),
    single: await each(plan.single, findOne),
  }),
);
