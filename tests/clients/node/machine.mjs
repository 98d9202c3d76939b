// Runs get-methods in the emulator of @ton/sandbox: a JSON object per line of stdin, answers likewise.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { Executor } = require("@ton/sandbox/dist/executor/Executor.js");
const { Address, Cell } = require("@ton/core");

const lines = readFileSync(0, "utf8").split("\n").filter(Boolean).map((text) => JSON.parse(text));
const engine = await Executor.create();
for (const line of lines) {
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
    stack: [],
    verbosity: "short",
    debugEnabled: false,
  });
  const { success, error, vm_exit_code: exit, gas_used: gas, stack } = output;
  console.log(JSON.stringify(success ? { exit, gas: Number(gas), stack } : { error }));
}
