"""Views for people that count or compare (prices, days, new contracts), and the macros."""

from tonlake.lake.schema.column import Column
from tonlake.lake.schema.view import (
    ASSET,
    DAY,
    INTERFACES,
    LABEL,
    MC_SEQNO,
    V_ACCOUNTS,
    V_COMMENTS,
    V_JETTON_TRANSFERS,
    V_JETTONS,
    V_MESSAGES,
    V_NFT_EVENTS,
    V_NFT_SALES,
    V_SWAPS,
    V_TRANSACTIONS,
    V_TRANSFERS,
    View,
    account,
    address,
    amount,
    choice,
    hash_column,
    number,
    text,
    time,
)


def _double(name: str, doc: str) -> Column:
    return Column(name, "double", doc, nullable=True)


_BALANCE = (
    time("Time of the block with the change"),
    *account("Owner"),
    LABEL,
    *ASSET,
    text("symbol", "TON, or symbol of the jetton"),
    *amount("balance", "Balance after the block"),
    *address("jetton_wallet", "Jetton wallet that holds it; NULL: TON"),
    number("lt", "Logical time of the last transaction before"),
    MC_SEQNO,
    number("block_seqno", "Seqno of the block in its shard; NULL for jettons"),
    DAY,
)

V_BALANCES = View(
    name="v_balances",
    doc="Balances in TON and jettons after every block that touched their account.",
    bases=("account_states", "jetton_wallets", "v_jettons"),
    columns=_BALANCE,
)

DEX_PRICES = View(
    name="dex_prices",
    doc=(
        "Jettons in TON by hour, from successful swaps through one pool between the jetton and TON "
        "(or wrapped TON), of at least 0.1 TON. A pool counts on a day with at least 3 of them and "
        "10 TON. A swap counts if its price is within half and twice the median of those of the "
        "jetton around it, 10 before and 10 after."
    ),
    bases=("dex_swaps", "v_jettons"),
    columns=(
        time("Beginning of the hour"),
        *account("Jetton master"),
        text("symbol", "Symbol of the jetton"),
        _double("open", "First price, TON for one jetton"),
        _double("high", "Highest price"),
        _double("low", "Lowest price"),
        _double("close", "Last price"),
        _double("volume_ton", "TON of the swaps that count"),
        _double("volume", "Jettons of the swaps that count"),
        number("trades", "Swaps that count"),
        number("pools", "Pools (or routers, as dex_swaps.pool) that they went through"),
        _double(
            "close_usd", "close in US dollars, by stablecoins of the last hour with any in a day"
        ),
    ),
)

TON_PRICES = View(
    name="ton_prices",
    doc="TON in US dollars by hour: the median over the stablecoins in dex_prices.",
    bases=("dex_prices",),
    columns=(
        time("Beginning of the hour"),
        _double("usd", "US dollars for one TON, at the last prices of the hour"),
        _double("volume_ton", "TON of the swaps that count"),
        number("stablecoins", "Number of stablecoins with a price"),
    ),
)

PRICES_DAILY = View(
    name="prices_daily",
    doc=(
        "TON and jettons by UTC day: the last price in dex_prices, or, of a token of liquid "
        "staking without one, TON for a token in the day's deposits of at least one TON."
    ),
    bases=("dex_prices", "ton_prices", "actions", "v_jettons"),
    columns=(
        Column("date", "date", "UTC day of the swaps or deposits", nullable=True),
        *ASSET,
        text("symbol", "TON, or symbol of the jetton"),
        _double("price_ton", "TON for one"),
        _double("price_usd", "US dollars for one, by the last price of TON that day"),
        _double("volume_ton", "TON of the swaps or deposits that count"),
        number("trades", "Their number; NULL: TON"),
        choice("source", "swaps", "staking"),
    ),
)

V_NEW_CONTRACTS = View(
    name="v_new_contracts",
    doc="Deployments: transactions that made an account without code active.",
    bases=("transactions", "account_states", "interfaces"),
    columns=(
        time("Time of the transaction"),
        *account("New contract"),
        LABEL,
        hash_column("code_hash", "Hash of its code after the block"),
        INTERFACES,
        hash_column("tx_hash", "Hash of the transaction"),
        number("lt", "Logical time of the transaction"),
        *(MC_SEQNO, DAY),
    ),
)

V_DAILY = View(
    name="v_daily",
    doc="One row per UTC day with transactions: what happened.",
    bases=("transactions", "messages", "jetton_transfers", "v_swaps", "v_new_contracts"),
    columns=(
        Column("date", "date", "UTC day of the transactions"),
        number("transactions", "Transactions"),
        number("failed", "Transactions that were aborted"),
        number("active_accounts", "Accounts with a transaction"),
        number("active_wallets", "Accounts that received a message from outside"),
        number("messages", "Messages consumed"),
        Column("fees", "scaled", "Fees in TON", nullable=True),
        Column("gas_used", "amount", "Gas used", nullable=True),
        Column("ton_volume", "scaled", "TON carried by consumed messages", nullable=True),
        number("jetton_transfers", "Jetton transfers that were not aborted"),
        number("swaps", "Successful swaps"),
        Column("swap_volume_ton", "scaled", "Their value in TON, where known", nullable=True),
        number("new_contracts", "Deployments"),
        Column(
            "new_contracts_by_code",
            "json",
            "Deployments by hash of the code (base64), the most frequent first",
            nullable=True,
        ),
    ),
)

BALANCES_AT = View(
    name="balances_at",
    doc=(
        "Balances of all accounts and jetton wallets at a time (UTC timestamp), from their newest "
        "states up to then, with the columns of v_balances."
    ),
    bases=("account_states", "jetton_wallets", "v_jettons"),
    columns=V_BALANCES.columns,
    parameters="ts",
)

JETTON_HOLDERS = View(
    name="jetton_holders",
    doc=(
        "Holders of a jetton (address of the master in any form), at a time or, by default, at the "
        "end of the lake; without empty wallets."
    ),
    bases=("jetton_wallets", "v_jettons"),
    columns=(
        *account("Owner"),
        LABEL,
        text("symbol", "Symbol of the jetton"),
        *amount("balance", "Balance"),
        _double("share", "Share of the sum of all holders"),
        *address("jetton_wallet", "Jetton wallet"),
        time("Time of the last change"),
    ),
    parameters="master, at := NULL",
)

VIEWS: dict[str, View] = {
    view.name: view
    for view in (
        *(V_JETTONS, V_ACCOUNTS, V_TRANSACTIONS, V_COMMENTS, V_MESSAGES, V_NEW_CONTRACTS),
        *(DEX_PRICES, TON_PRICES, PRICES_DAILY, V_JETTON_TRANSFERS, V_TRANSFERS, V_SWAPS),
        *(V_NFT_EVENTS, V_NFT_SALES),
        *(V_BALANCES, V_DAILY, BALANCES_AT, JETTON_HOLDERS),
    )
}
"""Every view for people and every macro over them, each after the views that it reads."""

MACROS = frozenset(view.name for view in VIEWS.values() if view.parameters)
"""The macros: they take parameters."""
