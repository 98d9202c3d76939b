"""Types of actions by the version of clients that know them, and the names of groups.

Source: the versions ``v1`` to ``v4`` of TON Center's API v3.
"""

from __future__ import annotations

V1 = (
    *("call_contract", "contract_deploy", "ton_transfer", "stake_deposit", "stake_withdrawal"),
    *("stake_withdrawal_request", "dex_deposit_liquidity", "jetton_transfer", "nft_transfer"),
    *("nft_mint", "jetton_burn", "jetton_mint", "jetton_swap", "change_dns", "delete_dns"),
    *("renew_dns", "subscribe", "dex_withdraw_liquidity", "unsubscribe", "election_deposit"),
    *("election_recover", "auction_bid", "tick_tock"),
)

V1_BLOCKS = frozenset(
    (
        *V1,
        *("tonstakers_deposit", "tonstakers_withdraw", "tonstakers_withdraw_request"),
        *("nominator_pool_deposit", "nominator_pool_withdraw_request"),
        *("ethena_deposit", "ethena_withdrawal_request"),
        *("dedust_deposit_liquidity", "dedust_deposit_liquidity_partial"),
        *("coffee_deposit_liquidity", "tonco_deposit_liquidity", "tonco_withdraw_liquidity"),
        "extra_currency_transfer",
    )
)
"""Types of blocks whose actions hide what they are made of."""
