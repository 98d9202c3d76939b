// Runs get-methods in the emulator of @ton/sandbox: a JSON object per line of stdin, answers likewise.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { Executor } = require("@ton/sandbox/dist/executor/Executor.js");
const { Address, Cell } = require("@ton/core");
const read = (text) => // a number, or the bag of a slice
  /^-?\d+$/.test(text) ? { type: "int", value: BigInt(text) } : { type: "slice", cell: Cell.fromBase64(text) };

const lines = readFileSync(0, "utf8").split("\n").filter(Boolean).map((text) => JSON.parse(text));
let engine = await Executor.create();

const run = async (line) => {
  const { output } = await engine.runGetMethod({
    code: Cell.fromBase64(line.code),
    data: Cell.fromBase64(line.data),
    address: Address.parse(line.address),
    config: lines[0].config,
    unixTime: line.time,
    balance: BigInt(line.balance),
    randomSeed: Buffer.from(line.seed, "hex"),
    gasLimit: BigInt(line.gas_limit),
    methodId: line.method,
    stack: (line.stack ?? []).map(read),
    verbosity: "short",
    debugEnabled: false,
  });
  const { success, error, vm_exit_code: exit, gas_used: gas, stack } = output;
  return success ? { exit, gas: Number(gas), stack } : { error };
};

for (const line of lines) {
  let answer;
  try {
    answer = await run(line);
  } catch (error) { // a trap of WebAssembly ends the engine
    answer = { error: String(error) };
    engine = await Executor.create();
  }
  console.log(JSON.stringify(answer));
}
