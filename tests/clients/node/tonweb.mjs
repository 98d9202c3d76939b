// Asks the HttpProvider of tonweb what the plan on stdin lists; prints the answers as JSON.
import { readFileSync } from "node:fs";
import TonWeb from "tonweb";

const plan = JSON.parse(readFileSync(0, "utf8"));
const provider = new TonWeb.HttpProvider(plan.endpoint);
const hex = (bytes) => Buffer.from(bytes).toString("hex");

async function readState(address) {
  return {
    balance: await provider.getBalance(address),
    info: await provider.getAddressInfo(address),
    extended: await provider.getExtendedAddressInfo(address),
    wallet: await provider.getWalletInfo(address),
  };
}

async function readHistory({ address, limit }) {
  const found = await provider.getTransactions(address, limit);
  for (;;) {
    const { lt, hash } = found[found.length - 1].transaction_id;
    const page = await provider.getTransactions(address, limit, lt, hash);
    if (page.length === 1) break;
    found.push(...page.slice(1));
  }
  return found.map((tx) => [tx.transaction_id.lt, tx.transaction_id.hash]);
}

async function readBlock(seqno) {
  const { shards } = await provider.getBlockShards(seqno);
  const transactions = [];
  for (const block of shards.filter(({ seqno: number }) => number > 0)) {
    const { workchain, shard, seqno: number } = block;
    const page = await provider.getBlockTransactions(workchain, shard, number, 40);
    transactions.push(...page.transactions.map((tx) => [tx.account, tx.lt, tx.hash]));
  }
  const header = await provider.getMasterchainBlockHeader(seqno);
  return { shards, transactions, header };
}

async function runMethod({ address, method, owner, index }) {
  const args = [];
  if (owner) {
    const cell = new TonWeb.boc.Cell();
    cell.bits.writeAddress(new TonWeb.utils.Address(owner));
    args.push(["tvm.Slice", TonWeb.utils.bytesToBase64(await cell.toBoc(false))]);
  }
  if (index !== undefined) args.push(["num", index]);
  const found = await provider.call2(address, method, args);
  const items = Array.isArray(found) ? found : [found];
  const write = async (item) => (item.hash ? hex(await item.hash()) : item.toString());
  return Promise.all(items.map(write));
}

async function readRefusal(address) {
  return provider.getBalance(address).then(
    () => null,
    (error) => error,
  );
}

async function each(items, ask) {
  const answers = [];
  for (const item of items) answers.push(await ask(item));
  return answers;
}

console.log(
  JSON.stringify({
    info: await provider.getMasterchainInfo(),
    states: await each(plan.accounts, readState),
    histories: await each(plan.pages, readHistory),
    blocks: await each(plan.seqnos, readBlock),
    params: await each(plan.params, async (n) => hex(await (await provider.getConfigParam(n)).hash())),
    methods: await each(plan.methods, runMethod),
    refusal: await readRefusal("no address"),
  }),
);
