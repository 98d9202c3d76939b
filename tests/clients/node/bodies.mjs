// Builds message bodies with public SDKs; prints [SDK, layout, bag, fields] of each as JSON. The
// layout is empty where the opcode is a number that contracts share, or one without a known layout.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { Address, beginCell, internal, SendMode } = require("@ton/core");
const ton = require("@ton/ton");
const { keyPairFromSeed } = require("@ton/crypto");
const TonWeb = require("tonweb");

const found = [];
const at = (digit) => new Address(0, Buffer.alloc(32, digit));
const [owner, other, third] = [at(0x11), at(0x22), at(0x33)];
const hash = (address) => address.hash.toString("hex");
const keys = keyPairFromSeed(Buffer.alloc(32, 7));
const text = beginCell().storeUint(0, 32).storeStringTail("paid").endCell();
const payload = beginCell().storeUint(0x77, 32).endCell();
const init = { code: beginCell().storeUint(1, 9).endCell(), data: beginCell().storeUint(2, 77).endCell() };
const sdk = { name: "" };
const timeout = 1_900_000_000;

const add = (layout, body, fields = {}) =>
  found.push([sdk.name, layout, Buffer.from(body.toBoc()).toString("base64"), fields]);
const attempt = async (what, build) => {
  try {
    await build();
  } catch (error) {
    throw new Error(`${sdk.name}, ${what}`, { cause: error });
  }
};

// What a contract would send is caught by a provider without a network.
const none = async () => { throw new Error("no network"); };
const answers = { address: other, number: 5n };
const stack = new Proxy({}, { get: (_, name) => () => (name.includes("Address") ? answers.address : name.includes("Boolean") ? true : name.includes("Cell") ? payload : answers.number) });
const provider = {
  getState: async () => ({ balance: 10n ** 9n, extracurrency: null, last: null, state: { type: "active", code: null, data: null } }),
  get: async () => ({ stack }),
  open: (contract) => new Proxy(contract, { get: (target, name) => typeof target[name] === "function" ? (...args) => target[name](provider, ...args) : target[name] }),
  provider: () => provider,
  external: async (body) => { provider.sent = body; },
  internal: async (_via, { body }) => { provider.sent = body; },
};
const via = { address: owner, send: async ({ body }) => { provider.sent = body; } };
const sent = (layout, send, fields = {}) => attempt(layout, async () => {
  provider.sent = null;
  await send();
  if (!provider.sent) throw new Error("nothing was sent");
  add(layout, provider.sent, fields);
});

const messages = (count, options = {}) => Array.from({ length: count }, (_, number) =>
  internal({ to: other, value: BigInt(number + 1), bounce: true, body: number % 2 ? text : undefined, ...options }));
const mode = SendMode.PAY_GAS_SEPARATELY + SendMode.IGNORE_ERRORS;

// Wallets of @ton/ton
sdk.name = "@ton/ton";
const { publicKey, secretKey } = keys;
const settings = { workchain: 0, publicKey };
for (const [version, layout, most] of [
  ["V1R1", "v1", 1], ["V1R2", "v1", 1], ["V1R3", "v1", 1],
  ["V2R1", "v2", 4], ["V2R2", "v2", 4], ["V3R1", "v3", 4], ["V3R2", "v3", 4], ["V4", "v4", 4],
]) {
  const wallet = ton[`WalletContract${version}`].create(settings);
  for (const count of most === 1 ? [1] : [0, 1, 4]) {
    for (const options of [{}, { init }]) {
      await attempt(version, () => {
        const transfer = { seqno: 3, timeout, secretKey, sendMode: mode, messages: messages(count, options) };
        add(`wallet_signed_${layout}`, wallet.createTransfer(transfer), { msg_seqno: 3 });
      });
    }
  }
}
const v4 = ton.WalletContractV4.create(settings);
const v4call = { seqno: 3, timeout, secretKey };
await attempt("v4 plugins", () => {
  const change = { address: other, forwardAmount: 7n, queryId: 5n };
  add("wallet_signed_v4", v4.createAddPlugin({ ...v4call, ...change }));
  add("wallet_signed_v4", v4.createRemovePlugin({ ...v4call, ...change }));
  add("wallet_signed_v4", v4.createAddAndDeployPlugin({ ...v4call, workchain: 0, stateInit: init, body: text, forwardAmount: 7n }));
});
for (const [version, prefix] of [["V5R1", "w5"], ["V5Beta", "w5_beta"]]) {
  const wallet = ton[`WalletContract${version}`].create({ publicKey });
  for (const authType of ["external", "internal", "extension"]) {
    const layout = `${prefix}_${authType}_${authType === "extension" ? "action" : "signed"}_request`;
    for (const count of [0, 1, 60]) {
      await attempt(`${version} ${authType} ${count}`, async () =>
        add(layout, await wallet.createTransfer({ seqno: 3, timeout, secretKey, sendMode: mode, authType, messages: messages(count) })));
    }
    const send = { type: "sendMsg", mode, outMsg: messages(1)[0] };
    for (const actions of [
      [{ type: "addExtension", address: other }],
      [{ type: "removeExtension", address: other }, send],
      [{ type: "setIsPublicKeyEnabled", isEnabled: true }, { type: "addExtension", address: other }, { type: "addExtension", address: third }, send, send],
    ]) {
      await attempt(`${version} ${authType} actions`, async () =>
        add(layout, await wallet.createRequest({ seqno: 3, timeout, secretKey, authType, actions })));
    }
  }
}
await attempt("multisig v1", async () => {
  const multisig = new ton.MultisigWallet([publicKey, Buffer.alloc(32, 9)], 0, 5, 2);
  const builder = new ton.MultisigOrderBuilder(5, 7200);
  for (const message of messages(3)) builder.addMessage(message, 3);
  const order = builder.build();
  order.sign(0, secretKey);
  await sent("multisig_signed_v1", () => multisig.sendOrder(order, secretKey, provider));
});

// tonweb
sdk.name = "tonweb";
const web = new TonWeb.HttpProvider("http://localhost:1");
const { BN, toNano: webNano, Address: WebAddress } = TonWeb.utils;
const webAddress = (address) => new WebAddress(address.toRawString());
const webAdd = async (layout, cell, fields) => {
  const bag = await cell.toBoc(false);
  add(layout, { toBoc: () => bag }, fields);
};
const webPayload = new TonWeb.boc.Cell();
webPayload.bits.writeUint(0, 32);
webPayload.bits.writeString("paid");
const webKeys = TonWeb.utils.nacl.sign.keyPair.fromSeed(new Uint8Array(32).fill(7));
for (const [version, layout] of [["simpleR1", "v1"], ["simpleR2", "v1"], ["simpleR3", "v1"], ["v2R1", "v2"], ["v2R2", "v2"], ["v3R1", "v3"], ["v3R2", "v3"], ["v4R1", "v4"], ["v4R2", "v4"]]) {
  await attempt(`tonweb ${version}`, async () => {
    const Wallet = TonWeb.Wallets.all[version] ?? TonWeb.Wallets.all[version.toUpperCase()];
    const wallet = new Wallet(web, { publicKey: webKeys.publicKey, wc: 0 });
    for (const seqno of [0, 3]) {
      const made = await wallet.createTransferMessage(webKeys.secretKey, owner.toString(), webNano("1"), seqno, "hello", 3, false);
      await webAdd(`wallet_signed_${layout}`, made.body);
    }
    if (layout !== "v1") {
      const list = [1, 2, 3].map((n) => ({ toAddress: owner.toString(), amount: webNano(String(n)), payload: "x", sendMode: 3 }));
      await webAdd(`wallet_signed_${layout}`, (await wallet.createTransferMessages(webKeys.secretKey, 4, list, false)).body);
    }
    await webAdd(`wallet_signed_${layout}`, (await wallet.createInitExternalMessage(webKeys.secretKey)).body);
    if (version === "v4R2") {
      const plugin = { secretKey: webKeys.secretKey, seqno: 3, pluginAddress: owner.toString(), amount: webNano("1"), queryId: 4 };
      await webAdd("wallet_signed_v4", (await wallet.installPlugin(plugin)).body);
      await webAdd("wallet_signed_v4", (await wallet.removePlugin(plugin)).body);
      const stateInit = (await wallet.createStateInit()).stateInit;
      await webAdd("wallet_signed_v4", (await wallet.deployAndInstallPlugin({ ...plugin, pluginWc: 0, stateInit, body: webPayload })).body);
    }
  });
}
await attempt("tonweb lockup, vesting", async () => {
  const lockup = new TonWeb.LockupWallets.LockupWalletV1(web, { publicKey: webKeys.publicKey, wc: 0, config: { wallet_type: "lockup-0.1", config_public_key: TonWeb.utils.bytesToBase64(webKeys.publicKey), total_amount: "1" } });
  await webAdd("wallet_signed_v3", (await lockup.createTransferMessage(webKeys.secretKey, owner.toString(), webNano("1"), 3, "hello", 3, false)).body);
  const { VestingWalletV1 } = TonWeb.LockupWallets;
  const vesting = new VestingWalletV1(web, { address: webAddress(other), publicKey: webKeys.publicKey, wc: 0 });
  await webAdd("wallet_signed_v3", (await vesting.createTransferMessage(webKeys.secretKey, owner.toString(), webNano("1"), 3, "hello", 3, false)).body);
  for (const count of [1, 2, 5]) await webAdd("vesting_add_white_list", vesting.createAddWhitelistBody({ addresses: [owner, other, third, owner, other].slice(0, count).map(webAddress), queryId: 5 }), { query_id: 5 });
  await webAdd("vesting_send_message", vesting.createInternalTransfer({ address: webAddress(owner), amount: webNano("1"), payload: "hi", sendMode: 3, queryId: 5 }), { query_id: 5, send_mode: 3 });
});
await attempt("tonweb highload v3", async () => {
  const { HighloadWalletContractV3, HighloadQueryId } = TonWeb.HighloadWallets ?? TonWeb;
  const wallet = new HighloadWalletContractV3(web, { publicKey: webKeys.publicKey, timeout: 3600 });
  const made = await wallet.createTransferMessage(webKeys.secretKey, owner.toString(), webNano("1"), HighloadQueryId.fromShiftAndBitNumber(5n, 9n), "hi", 3, 1_700_000_000);
  await webAdd("highload_wallet_signed_v3", made.body);
});
await attempt("tonweb subscription", async () => {
  const plugin = new TonWeb.SubscriptionContract(web, { wc: 0, wallet: webAddress(owner), beneficiary: webAddress(other), amount: webNano("1"), period: 1000, timeout: 10, startAt: 5, subscriptionId: 1, address: webAddress(third) });
  await webAdd("payment_confirmed", plugin.createBody());
  await webAdd("wallet_plugin_destruct", plugin.createSelfDestructBody());
});
await attempt("tonweb jettons", async () => {
  const { JettonMinter, JettonWallet } = TonWeb.token.jetton;
  const wallet = new JettonWallet(web, { address: webAddress(other) });
  for (const forwardPayload of [undefined, webPayload, new Uint8Array([0, 0, 0, 0, 65])]) {
    const transfer = { queryId: 5, jettonAmount: new BN(7), tokenAmount: new BN(7), toAddress: webAddress(owner), responseAddress: webAddress(third), forwardAmount: new BN(9), forwardPayload };
    await webAdd("jetton_transfer", await wallet.createTransferBody(transfer), { query_id: 5, amount: 7, forward_ton_amount: 9, destination: hash(owner), response_destination: hash(third) });
  }
  await webAdd("jetton_burn", await wallet.createBurnBody({ queryId: 5, jettonAmount: new BN(7), tokenAmount: new BN(7), responseAddress: webAddress(third) }), { query_id: 5, amount: 7, response_destination: hash(third) });
  const minter = new JettonMinter(web, { adminAddress: webAddress(owner), jettonContentUri: "https://a", jettonWalletCodeHex: JettonWallet.codeHex, wc: 0 });
  await webAdd("minter_jetton_mint", await minter.createMintBody({ jettonAmount: new BN(7), tokenAmount: new BN(7), destination: webAddress(owner), amount: new BN(9), queryId: 5 }), { query_id: 5 });
  await webAdd("change_owner", await minter.createChangeAdminBody({ queryId: 5, newAdminAddress: webAddress(third) }));
  await webAdd("change_content", await minter.createEditContentBody({ queryId: 5, jettonContentUri: "https://b" }));
});
await attempt("tonweb nfts", async () => {
  const { NftItem, NftCollection, NftSale } = TonWeb.token.nft;
  const item = new NftItem(web, { address: webAddress(other) });
  for (const forwardPayload of [undefined, webPayload, new Uint8Array([0, 0, 0, 0, 65])]) {
    await webAdd("nft_transfer", await item.createTransferBody({ queryId: 5, newOwnerAddress: webAddress(owner), forwardAmount: new BN(9), forwardPayload, responseAddress: webAddress(third) }), { query_id: 5, new_owner: hash(owner), forward_amount: 9 });
  }
  await webAdd("get_static_data", item.createGetStaticDataBody({ queryId: 5 }), { query_id: 5 });
  const collection = new NftCollection(web, { ownerAddress: webAddress(owner), royalty: 0.1, royaltyAddress: webAddress(owner), collectionContentUri: "a", nftItemContentBaseUri: "b", nftItemCodeHex: NftItem.codeHex, wc: 0 });
  await webAdd("get_royalty_params", collection.createGetRoyaltyParamsBody({ queryId: 5 }), { query_id: 5 });
  await webAdd("nft_collection_mint", collection.createMintBody({ itemIndex: 3, amount: webNano("1"), itemOwnerAddress: webAddress(owner), itemContentUri: "c", queryId: 5 }));
  await webAdd("change_owner", collection.createChangeOwnerBody({ queryId: 5, newOwnerAddress: webAddress(third) }));
  await webAdd("change_content", collection.createEditContentBody({ queryId: 5, collectionContentUri: "a", nftItemContentBaseUri: "b", royalty: 0.2, royaltyAddress: webAddress(owner) }));
  const sale = new NftSale(web, { address: webAddress(other) });
  await webAdd("", await sale.createCancelBody({ queryId: 5 }));
});
await attempt("tonweb dns", async () => {
  const { DnsItem } = TonWeb.dns;
  const change = DnsItem.createChangeContentEntryBody;
  const records = [
    ["wallet", TonWeb.dns.createSmartContractAddressRecord(webAddress(owner))],
    ["site", TonWeb.dns.createAdnlAddressRecord(new TonWeb.utils.AdnlAddress("AB".repeat(32)))],
    ["site", TonWeb.dns.createStorageBagIdRecord(new TonWeb.utils.StorageBagId("CD".repeat(32)))],
    ["dns_next_resolver", TonWeb.dns.createNextResolverRecord(webAddress(other))],
  ];
  for (const [category, value] of records) await webAdd("change_dns_record", await change({ category, value, queryId: 5 }), { query_id: 5 });
  await webAdd("delete_dns_record", await change({ category: "wallet", value: null, queryId: 5 }), { query_id: 5 });
});
await attempt("tonweb channel", async () => {
  const channel = new TonWeb.payments.PaymentChannel(web, { channelId: new BN(5), isA: true, myKeyPair: webKeys, hisPublicKey: webKeys.publicKey, addressA: webAddress(owner), addressB: webAddress(other), initBalanceA: new BN(5), initBalanceB: new BN(6) });
  const state = { balanceA: new BN(5), balanceB: new BN(6), seqnoA: new BN(1), seqnoB: new BN(2) };
  const hisSignature = new Uint8Array(64).fill(9);
  await webAdd("top_up_channel_balance", await channel.createTopUpBalance({ coinsA: new BN(5), coinsB: new BN(6) }), { add_A: 5, add_B: 6 });
  await webAdd("init_payment_channel", (await channel.createInitChannel({ balanceA: new BN(5), balanceB: new BN(6) })).cell);
  await webAdd("channel_cooperative_close", (await channel.createCooperativeCloseChannel({ ...state, hisSignature })).cell);
  await webAdd("channel_cooperative_commit", (await channel.createCooperativeCommit({ seqnoA: new BN(1), seqnoB: new BN(2), hisSignature })).cell);
  const signed = async () => (await channel.createSignedSemiChannelState({ mySeqno: new BN(1), mySentCoins: new BN(2), hisSeqno: new BN(3), hisSentCoins: new BN(4) })).cell;
  const [signedSemiChannelStateA, signedSemiChannelStateB] = [await signed(), await signed()];
  await webAdd("start_uncooperative_channel_close", (await channel.createStartUncooperativeClose({ signedSemiChannelStateA, signedSemiChannelStateB })).cell);
  await webAdd("challenge_quarantined_channel_state", (await channel.createChallengeQuarantinedState({ signedSemiChannelStateA, signedSemiChannelStateB })).cell);
  await webAdd("settle_channel_conditionals", (await channel.createSettleConditionals({ conditionalsToSettle: null })).cell);
  await webAdd("finish_uncooperative_channel_close", await channel.createFinishUncooperativeClose());
});

// @ton-community/assets-sdk
sdk.name = "@ton-community/assets-sdk";
const assets = require("@ton-community/assets-sdk");
const open = (contract) => provider.open(contract);
const notify = { queryId: 5n, notify: { amount: 9n, payload: text } };
await attempt("assets jettons", async () => {
  const wallet = open(assets.JettonWallet.createFromAddress(other));
  const minter = open(assets.JettonMinter.createFromAddress(other));
  for (const options of [{ queryId: 5n }, { ...notify, returnExcess: third }, { ...notify, customPayload: payload }])
    await sent("jetton_transfer", () => wallet.send(via, owner, 7n, options), { query_id: 5, amount: 7, destination: hash(owner) });
  for (const options of [{ queryId: 5n }, { queryId: 5n, customPayload: payload, returnExcess: third }])
    await sent("jetton_burn", () => wallet.sendBurn(via, 7n, options), { query_id: 5, amount: 7 });
  for (const options of [{ queryId: 5n }, notify]) await sent("minter_jetton_mint", () => minter.sendMint(via, owner, 7n, options), { query_id: 5 });
  await sent("change_owner", () => minter.sendChangeAdmin(via, owner, { queryId: 5n }));
  await sent("change_content", () => minter.sendChangeContent(via, payload, { queryId: 5n }));
});
await attempt("assets nfts", async () => {
  const item = open(assets.NftItem.createFromAddress(other));
  for (const options of [{ queryId: 5n }, { ...notify, returnExcess: third }]) await sent("nft_transfer", () => item.send(via, owner, options), { query_id: 5, new_owner: hash(owner) });
  const collection = open(assets.NftCollection.createFromAddress(other));
  await sent("nft_collection_mint", () => collection.sendMint(via, { index: 3n, owner, individualContent: payload }, { queryId: 5n }));
  await sent("nft_collection_batch_mint", () => collection.sendBatchMint(via, [{ index: 3n, owner, individualContent: payload }, { index: 4n, owner, individualContent: payload }], { queryId: 5n }));
  await sent("change_owner", () => collection.sendChangeAdmin(via, owner, { queryId: 5n }));
});
await attempt("assets highload v2", async () => {
  const { HighloadWalletContractV2 } = require("@ton-community/assets-sdk/dist/wallets/HighloadWalletContractV2.js");
  const wallet = HighloadWalletContractV2.create({ workchain: 0, publicKey });
  for (const count of [1, 3, 254]) {
    await sent("highload_wallet_signed_v2", () => wallet.sendTransfer(provider, { queryId: 5n, seqno: 3, secretKey, sendMode: mode, timeout, messages: messages(count) }));
  }
});

// STON.fi and its pTON
sdk.name = "@ston-fi/sdk";
const { DEX, pTON, FARM } = require("@ston-fi/sdk");
const built = (layout, build, fields) => attempt(layout, async () => add(layout, await build(), fields));
const swap = { userWalletAddress: owner, receiverAddress: owner, askJettonWalletAddress: other, minAskAmount: 7n, refundAddress: third, excessesAddress: third, deadline: timeout };
const provide = { routerWalletAddress: other, minLpOut: 7n, receiverAddress: owner, refundAddress: third, excessesAddress: third, bothPositive: true, deadline: timeout };
const paid = { dexCustomPayload: payload, dexCustomPayloadForwardGasAmount: 5n, refundPayload: payload, refundForwardGasAmount: 6n, referralAddress: owner, referralValue: 10n };
{
  const router = new DEX.v1.Router(other);
  await built("stonfi_swap_forward_payload", () => router.createSwapBody(swap));
  await built("stonfi_swap_forward_payload", () => router.createSwapBody({ ...swap, referralAddress: third }));
  await built("stonfi_provide_liquidity_forward_payload", () => router.createProvideLiquidityBody(provide));
  const pool = new DEX.v1.Pool(other);
  await built("", () => pool.createCollectFeesBody({ queryId: 5 }));
  await built("jetton_burn", () => pool.createBurnBody({ amount: 7n, responseAddress: owner, queryId: 5 }));
  const account = new DEX.v1.LpAccount(other);
  await built("", () => account.createRefundBody({ queryId: 5 }));
  await built("", () => account.createDirectAddLiquidityBody({ amount0: 1n, amount1: 2n, queryId: 5 }));
  await built("tonco_reset_gas", () => account.createResetGasBody({ queryId: 5 }));
}
for (const { Router, Pool, LpAccount, Vault } of [DEX.v2_1, DEX.v2_2]) {
  const router = new (Router.CPI ?? Router)(other);
  for (const more of [{}, paid]) {
    await built("stonfi_swap_v2_forward_payload", () => router.createSwapBody({ ...swap, ...more }));
    await built("", () => router.createCrossSwapBody({ ...swap, ...more }));
    await built("stonfi_provide_lp_v2_forward_payload", () => router.createProvideLiquidityBody({ ...provide, ...more }));
  }
  const pool = new (Pool.CPI ?? Pool)(other);
  await built("", () => pool.createCollectFeesBody({ queryId: 5 }));
  await built("jetton_burn", () => pool.createBurnBody({ amount: 7n, dexCustomPayload: payload, queryId: 5 }));
  const account = new LpAccount(other);
  await built("", () => account.createRefundBody({ queryId: 5, leftMaybePayload: payload }));
  await built("", () => account.createDirectAddLiquidityBody({ amount0: 1n, amount1: 2n, userWalletAddress: owner, dexCustomPayload: payload, queryId: 5 }));
  await built("pton_reset_gas", () => account.createResetGasBody({ queryId: 5 }));
  await built("stonfi_withdraw_fee_v2", () => new Vault(other).createWithdrawFeeBody({ queryId: 5 }));
}
for (const version of Object.keys(pTON)) {
  const pton = new pTON[version](other);
  await sent(version === "v1" ? "jetton_transfer" : "pton_ton_transfer", () => pton.sendTonTransfer(provider, via, { tonAmount: 5n, destinationAddress: owner, destinationWalletAddress: owner, refundAddress: third, forwardPayload: payload, forwardTonAmount: 6n, queryId: 5 }));
  await built(version === "v1" ? "" : "pton_deploy_wallet", () => pton.createDeployWalletBody({ ownerAddress: owner, excessAddress: third, queryId: 5 }));
}
for (const version of Object.keys(FARM)) {
  const { NftItem, NftMinter } = FARM[version];
  const item = new NftItem(other);
  await built("", () => item.createClaimRewardsBody({ queryId: 5, claimAll: true }));
  await built("", () => item.createUnstakeBody({ queryId: 5 }));
  if (item.createDestroyBody) await built("sbt_destroy", () => item.createDestroyBody({ queryId: 5 }));
  await built("", () => new NftMinter(other).createStakeBody({ ownerAddress: owner }));
}

// DeDust
sdk.name = "@dedust/sdk";
{
  const dedust = require("@dedust/sdk");
  const { Asset, PoolType, VaultJetton } = dedust;
  const pair = [Asset.native(), Asset.jetton(third)];
  const next = { poolAddress: third, limit: 3n, next: { poolAddress: owner } };
  const swapParams = { deadline: timeout, recipientAddress: owner, referralAddress: third, fulfillPayload: payload, rejectPayload: payload };
  const deposit = { poolType: PoolType.STABLE, assets: pair, targetBalances: [1n, 2n], minimalLpAmount: 3n, minimalLPAmount: 3n };
  const native = open(dedust.VaultNative.createFromAddress(other));
  for (const more of [{}, { next, swapParams, limit: 9n }]) {
    await sent("dedust_swap", () => native.sendSwap(via, { queryId: 5, amount: 7n, poolAddress: other, ...more }), { query_id: 5, amount: 7 });
    add("dedust_swap", VaultJetton.createSwapPayload({ poolAddress: other, ...more }));
  }
  for (const more of [{}, { fulfillPayload: payload, rejectPayload: payload }]) {
    await sent("dedust_deposit_liquidity", () => native.sendDepositLiquidity(via, { queryId: 5, amount: 7n, ...deposit, ...more }), { query_id: 5, amount: 7 });
    add("dedust_deposit_liquidity", VaultJetton.createDepositLiquidityPayload({ ...deposit, ...more }));
  }
  const factory = open(dedust.Factory.createFromAddress(other));
  for (const asset of pair) await sent("dedust_create_vault", () => factory.sendCreateVault(via, { queryId: 5, asset }), { query_id: 5 });
  await sent("dedust_create_volatile_pool", () => factory.sendCreateVolatilePool(via, { queryId: 5, assets: pair }), { query_id: 5 });
  const pending = open(dedust.LiquidityDeposit.createFromAddress(other));
  for (const more of [null, payload]) await sent("dedust_cancel_deposit", () => pending.sendCancelDeposit(via, { queryId: 5, payload: more }), { query_id: 5 });
}

// Some SDKs bring their own @ton/core, which refuses addresses and cells of another one.
const convert = (name) => {
  const core = createRequire(require.resolve(name))("@ton/core");
  const addresses = [owner, other, third].map((address) => core.Address.parse(address.toRawString()));
  return [...addresses, core.Cell.fromBoc(payload.toBoc())[0]];
};

// TONCO
sdk.name = "@toncodex/sdk";
{
  const [owner, other, third, payload] = convert(sdk.name);
  const tonco = require("@toncodex/sdk");
  const { PoolMessageManager: manager, RouterV3Contract: Router, PoolV3Contract: Pool } = tonco;
  add("tonco_router_create_pool", Router.deployPoolMessage(owner, other, 60, 1n << 96n, true, { jetton0Minter: owner, jetton1Minter: other, controllerAddress: third, nftContentPacked: payload, nftItemContentPacked: payload }));
  add("tonco_pool_init", Pool.reinitMessage({ is_from_admin: true, activate_pool: true, tickSpacing: 60, sqrtPriceX96: 1n << 96n, jetton0Minter: owner, jetton1Minter: other, admin: owner, controller: third, nftContentPacked: payload, nftItemContentPacked: payload, protocolFee: 1, lpFee: 2, currentFee: 3 }));
  add("tonco_pool_set_fee", Pool.messageSetFees(1, 2, 3));
  add("", Pool.messageCollectProtocol());
  add("tonco_pool_start_burn", manager.createBurnMessage(other, 3, -60, 60, 7n).body);
  add("tonco_pool_start_burn", manager.createCollectMessage(other, 3, -60, 60).body);
  for (const type of [0, 1, 2]) add(type === 0 ? "pton_ton_transfer" : "jetton_transfer", manager.createSwapExactInMessage(owner, other, third, 7n, 5n, 1n << 90n, type).body);
  const pool = open(new Pool(other));
  await sent("", () => pool.sendLockPool(via, 1n));
  await sent("", () => pool.sendUnlockPool(via, 1n));
  const account = open(new tonco.AccountV3Contract(other));
  await sent("tonco_reset_gas", () => account.sendResetGas(via, 1n));
  await sent("", () => account.sendAddLiquidity(via, 1n, 2n, 3n, 4n));
  await sent("", () => account.sendRefundMe(via, 1n));
}

// EVAA
sdk.name = "@evaafi/sdk";
{
  const [owner, other, third, payload] = convert(sdk.name);
  const evaa = require("@evaafi/sdk");
  const master = Object.create(evaa.EvaaMasterClassic.prototype, { address: { value: other }, _poolConfig: { value: evaa.MAINNET_POOL_CONFIG } });
  const more = { queryID: 5n, includeUserCode: true, userAddress: owner, responseAddress: owner, payload, subaccountId: 1, returnRepayRemainingsFlag: false, customPayloadRecipient: third, customPayloadSaturationFlag: true, forwardAmount: 9n };
  add("evaa_supply_master", master.createSupplyMessage({ ...more, asset: evaa.TON_MAINNET, amount: 7n }));
  add("jetton_transfer", master.createSupplyMessage({ ...more, asset: evaa.USDT_MAINNET, amount: 7n }));
  const both = { ...more, supplyAmount: 3n, withdrawAsset: evaa.USDT_MAINNET, withdrawAmount: 7n, withdrawRecipient: owner, tonForRepayRemainings: 0n };
  for (const supplyAsset of [evaa.TON_MAINNET, evaa.USDT_MAINNET]) {
    const layout = supplyAsset === evaa.TON_MAINNET ? "evaa_supply_withdraw_master_without_prices" : "jetton_transfer";
    add(layout === "jetton_transfer" ? layout : "", master.createSupplyWithdrawMessage({ ...both, supplyAsset, priceData: payload }));
    add(layout, master.createSupplyWithdrawMessage({ ...both, supplyAsset }));
  }
  const bad = { ...more, borrowerAddress: owner, loanAsset: 1n, collateralAsset: 2n, minCollateralAmount: 3n, liquidationAmount: 4n, liquidatorAddress: third, priceData: payload };
  for (const asset of [evaa.TON_MAINNET, evaa.USDT_MAINNET]) add(asset === evaa.TON_MAINNET ? "evaa_liquidate_master" : "jetton_transfer", master.createLiquidationMessage({ ...bad, asset }));
  const user = open(Object.create(evaa.EvaaUser.prototype, { address: { value: other } }));
  await sent("evaa_get_store_request", () => user.sendOnchainGetter(via, 1n, 5n, payload), { query_id: 5 });
}

// Hipo
sdk.name = "@hipo-finance/sdk";
{
  const [, other, third] = convert(sdk.name);
  const hipo = require("@hipo-finance/sdk");
  const bag = (text) => ({ toBoc: () => Buffer.from(text, "base64") });
  add("hipo_finance_deposit_coins", bag(hipo.createDepositMessage(other, 7n, 5n, third).payload), { query_id: 5, coins: 7 });
  add("hipo_finance_deposit_coins", bag(hipo.createDepositMessage(other, 7n, 5n).payload), { query_id: 5 });
  add("jetton_burn", bag(hipo.createUnstakeMessage(other, 7n, 5n).payload), { query_id: 5, amount: 7 });
}

console.log(JSON.stringify(found));
