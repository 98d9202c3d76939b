"""The table of methods: what each takes, and what answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from api.v2 import account, arguments, block, config, form, get_method, transaction


class Method(msgspec.Struct, frozen=True):
    """One method: the struct of its parameters, and the function that answers.

    A pure one is answered from its parameters alone, the others from a `Call` and them. One that
    is ``post_only`` takes what a query string cannot hold.
    """

    params: type[arguments.Params]
    answer: Callable[..., Any]
    pure: bool = False
    post_only: bool = False


METHODS: dict[str, Method] = {
    "detectAddress": Method(arguments.TextParams, form.answer_detect_address, pure=True),
    "detectHash": Method(arguments.HashParams, form.answer_detect_hash, pure=True),
    "packAddress": Method(arguments.TextParams, form.answer_pack_address, pure=True),
    "unpackAddress": Method(arguments.TextParams, form.answer_unpack_address, pure=True),
    "healthcheck": Method(arguments.NoParams, form.answer_healthcheck, pure=True),
    "getAddressInformation": Method(arguments.AccountParams, account.answer_information),
    "getExtendedAddressInformation": Method(
        arguments.AccountParams, account.answer_extended_information
    ),
    "getWalletInformation": Method(arguments.AccountParams, account.answer_wallet_information),
    "getAddressBalance": Method(arguments.AccountParams, account.answer_balance),
    "getAddressState": Method(arguments.AccountParams, account.answer_state),
    "getTransactions": Method(arguments.HistoryParamsZero, transaction.answer_transactions),
    "getTransactionsStd": Method(arguments.HistoryParams, transaction.answer_transactions_std),
    "tryLocateTx": Method(arguments.LocateParams, transaction.answer_receiver),
    "tryLocateResultTx": Method(arguments.LocateParams, transaction.answer_receiver),
    "tryLocateSourceTx": Method(arguments.LocateParams, transaction.answer_sender),
    "getMasterchainInfo": Method(arguments.NoParams, block.answer_masterchain_info),
    "getConsensusBlock": Method(arguments.NoParams, block.answer_consensus_block),
    "lookupBlock": Method(arguments.LookupParams, block.answer_lookup),
    "shards": Method(arguments.MasterParams, block.answer_shards),
    "getShards": Method(arguments.MasterParams, block.answer_shards),
    "getBlockHeader": Method(arguments.BlockParams, block.answer_header),
    "getBlockTransactions": Method(arguments.BlockPageParams, block.answer_block_transactions),
    "getBlockTransactionsExt": Method(
        arguments.BlockPageParams, block.answer_block_transactions_ext
    ),
    "getConfigParam": Method(arguments.ConfigParamParams, config.answer_config_param),
    "getConfigAll": Method(arguments.ConfigParams, config.answer_config_all),
    "getLibraries": Method(arguments.LibraryParams, config.answer_libraries),
    "runGetMethod": Method(arguments.GetMethodParams, get_method.answer_run, post_only=True),
    "runGetMethodStd": Method(arguments.GetMethodParams, get_method.answer_run_std, post_only=True),
}
"""Methods by name; each is a path of its own and a method of jsonRPC."""
