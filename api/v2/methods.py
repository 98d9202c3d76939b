"""The table of methods: their parameters and handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tonlake.api.chain import arguments as shared
from tonlake.api.v2 import arguments
from tonlake.api.v2.method import (
    account,
    block,
    config,
    dns,
    form,
    proof,
    send,
    token,
    transaction,
)


class Method(msgspec.Struct, frozen=True):
    """One method: the struct of its parameters, and its handler.

    A ``pure`` method needs only its parameters, the others also a `Call`. A ``post_only`` method
    has parameters that a query string cannot hold. The response of a ``lasting`` method depends
    only on the snapshot and the parameters, so it is valid until the next commit. An ``unwaiting``
    method, as all pure ones are, waits only for its reader.
    """

    params: type[shared.Params]
    answer: Callable[..., Any]
    pure: bool = False
    post_only: bool = False
    lasting: bool = True
    unwaiting: bool = False


METHODS: dict[str, Method] = {
    "detectAddress": Method(arguments.TextParams, form.answer_detect_address, pure=True),
    "detectHash": Method(arguments.HashParams, form.answer_detect_hash, pure=True),
    "packAddress": Method(arguments.TextParams, form.answer_pack_address, pure=True),
    "unpackAddress": Method(arguments.TextParams, form.answer_unpack_address, pure=True),
    "healthcheck": Method(arguments.NoParams, form.answer_healthcheck, pure=True),
    "getAddressInformation": Method(
        shared.AccountParams, account.answer_information, unwaiting=True
    ),
    "getExtendedAddressInformation": Method(
        shared.AccountParams, account.answer_extended_information
    ),
    "getWalletInformation": Method(shared.AccountParams, account.answer_wallet_information),
    "getAddressBalance": Method(shared.AccountParams, account.answer_balance, unwaiting=True),
    "getAddressState": Method(shared.AccountParams, account.answer_state, unwaiting=True),
    "getShardAccountCell": Method(shared.AccountParams, account.answer_shard_account),
    "getTokenData": Method(shared.AccountParams, token.answer_token),
    "dnsResolve": Method(arguments.ResolveParams, dns.answer_resolve),
    "getTransactions": Method(arguments.HistoryParamsZero, transaction.answer_transactions),
    "getTransactionsStd": Method(arguments.HistoryParams, transaction.answer_transactions_std),
    "tryLocateTx": Method(arguments.LocateParams, transaction.answer_receiver),
    "tryLocateResultTx": Method(arguments.LocateParams, transaction.answer_receiver),
    "tryLocateSourceTx": Method(arguments.LocateParams, transaction.answer_sender),
    "getMasterchainInfo": Method(arguments.NoParams, block.answer_masterchain_info, unwaiting=True),
    "getConsensusBlock": Method(arguments.NoParams, block.answer_consensus_block, lasting=False),
    "lookupBlock": Method(arguments.LookupParams, block.answer_lookup),
    "shards": Method(arguments.MasterParams, block.answer_shards),
    "getShards": Method(arguments.MasterParams, block.answer_shards),
    "getBlockHeader": Method(arguments.BlockParams, block.answer_header),
    "getMasterchainBlockSignatures": Method(arguments.MasterParams, proof.answer_signatures),
    "getShardBlockProof": Method(arguments.ProofParams, proof.answer_shard_proof),
    "getOutMsgQueueSize": Method(arguments.NoParams, config.answer_queue_sizes),
    "getOutMsgQueueSizes": Method(arguments.NoParams, config.answer_queue_sizes),
    "getBlockTransactions": Method(arguments.BlockPageParams, block.answer_block_transactions),
    "getBlockTransactionsExt": Method(
        arguments.BlockPageParams, block.answer_block_transactions_ext
    ),
    "getConfigParam": Method(arguments.ConfigParamParams, config.answer_config_param),
    "getConfigAll": Method(arguments.ConfigParams, config.answer_config_all),
    "getLibraries": Method(arguments.LibraryParams, config.answer_libraries),
    "runGetMethod": Method(shared.GetMethodParams, account.answer_run, post_only=True),
    "runGetMethodStd": Method(shared.GetMethodParams, account.answer_run_std, post_only=True),
    "estimateFee": Method(shared.EstimateParams, send.answer_estimate, post_only=True),
    "estimateFeeSimple": Method(shared.EstimateCellParams, send.answer_estimate, post_only=True),
    "sendQuery": Method(shared.EstimateParams, send.answer_send_query, post_only=True),
    "sendQuerySimple": Method(shared.EstimateCellParams, send.answer_send_query, post_only=True),
    "sendCellSimple": Method(arguments.CellParams, send.answer_send_cell, post_only=True),
    **{
        name: Method(arguments.BagParams, send.answer_with(name), post_only=True)
        for name in ("sendBoc", "sendBocReturnHash", "sendBocReturnHashNoError", "sendBocUnsafe")
    },
}
"""Methods by name; each has its own path and is a method of jsonRPC."""
