"""Types of actions by the version of clients that know them, and the names of groups.

Source: the versions ``v1`` to ``v5`` of TON Center's API v3, and the names that its parameter
``supported_action_types`` accepts.
"""

from functools import lru_cache

V1 = (
    *("call_contract", "contract_deploy", "ton_transfer", "stake_deposit", "stake_withdrawal"),
    *("stake_withdrawal_request", "dex_deposit_liquidity", "jetton_transfer", "nft_transfer"),
    *("nft_mint", "jetton_burn", "jetton_mint", "jetton_swap", "change_dns", "delete_dns"),
    *("renew_dns", "subscribe", "dex_withdraw_liquidity", "unsubscribe", "election_deposit"),
    *("election_recover", "auction_bid", "tick_tock"),
)
_SALES = (
    *("nft_put_on_sale", "nft_put_on_auction", "auction_outbid", "nft_cancel_sale"),
    *("nft_purchase", "nft_cancel_auction", "nft_finish_auction", "teleitem_start_auction"),
    *("teleitem_cancel_auction", "nft_update_sale", "dns_purchase", "dns_release"),
)

NAMES: dict[str, tuple[str, ...]] = {
    "v1": V1,
    "v2": (
        *("v1", "unknown", "nft_discovery", "tonco_deploy_pool", "coffee_mev_protect_failed_swap"),
        *("multisig", "vesting", "evaa", "jvault", "coffee"),
    ),
    "v3": ("v2", *_SALES, "layerzero"),
    "v4": ("v3", "cocoon"),
    "v5": (
        *("v4", "dedust_v2_claim_fees", "dedust_v2_claim_reward", "change_wallet_key"),
        "gasless_request",
    ),
    "latest": ("v5", "wallet_v5_add_extension", "wallet_v5_remove_extension"),
    "staking": ("stake_deposit", "stake_withdrawal", "stake_withdrawal_request"),
    "jettons": ("jetton_transfer", "jetton_burn", "jetton_mint"),
    "nft": ("nft_transfer", "nft_mint", "auction_bid"),
    "nft.v3": ("nft", *_SALES),
    "dns": ("change_dns", "delete_dns", "renew_dns", "dns_purchase", "dns_release"),
    "dns.v2": ("dns", "dns_purchase", "dns_release"),
    "multisig": ("multisig_create_order", "multisig_approve", "multisig_execute"),
    "vesting": ("vesting_send_message", "vesting_add_whitelist"),
    "evaa": ("evaa_supply", "evaa_withdraw", "evaa_liquidate"),
    "jvault": ("jvault_stake", "jvault_unstake", "jvault_claim", "jvault_unstake_request"),
    "coffee": (
        *("coffee_create_vault", "coffee_create_pool_creator", "coffee_create_pool"),
        *("coffee_mev_protect_hold_funds", "coffee_staking_claim_rewards"),
        *("coffee_staking_deposit", "coffee_staking_withdraw"),
    ),
    "tgbtc": (
        *("tgbtc_dkg_log_fallback", "tgbtc_new_key", "tgbtc_new_key_fallback", "tgbtc_burn"),
        *("tgbtc_burn_fallback", "tgbtc_mint", "tgbtc_mint_fallback"),
    ),
    "layerzero": (
        *("layerzero_send", "layerzero_send_tokens", "layerzero_receive"),
        *("layerzero_commit_packet", "layerzero_dvn_verify"),
    ),
    "cocoon": (
        *("cocoon_worker_payout", "cocoon_proxy_payout", "cocoon_proxy_charge"),
        *("cocoon_client_top_up", "cocoon_register_proxy", "cocoon_unregister_proxy"),
        *("cocoon_client_register", "cocoon_client_change_secret_hash"),
        *("cocoon_client_request_refund", "cocoon_grant_refund"),
        *("cocoon_client_increase_stake", "cocoon_client_withdraw"),
    ),
}
"""Names of groups, each with its types and other groups."""

_GROUPED = {name for names in NAMES.values() for name in names} - NAMES.keys()
ACTION_TYPES = tuple(sorted(_GROUPED | {"extra_currency_transfer"}))

SALES = tuple(sorted({*_SALES, "auction_bid"}))
"""Types of actions that are events of a sale or an auction of an NFT."""

V1_BLOCKS = frozenset(
    (
        *V1,
        *("tonstakers_deposit", "tonstakers_withdraw", "tonstakers_withdraw_request"),
        *("nominator_pool_deposit", "nominator_pool_withdraw_request"),
        *("hipo_stake_deposit", "hipo_stake_withdrawal", "hipo_stake_withdrawal_request"),
        *("change_wallet_key", "gasless_request"),
        *("ethena_deposit", "ethena_withdrawal_request"),
        *("dedust_deposit_liquidity", "dedust_deposit_liquidity_partial"),
        *("dedust_v2_deposit_liquidity", "dedust_v2_deposit_liquidity_partial"),
        *("coffee_deposit_liquidity", "tonco_deposit_liquidity", "tonco_withdraw_liquidity"),
        "extra_currency_transfer",
    )
)
"""Types of blocks whose actions hide their parts."""


@lru_cache(256)
def expand_names(names: tuple[str, ...]) -> frozenset[str]:
    """Return the types in the named groups, names that are types, and those of v1."""
    types: set[str] = set()
    seen: set[str] = set()
    todo = ["v1", *names]
    while todo:
        name = todo.pop()
        if name not in NAMES:
            types.add(name)
        elif name not in seen:
            seen.add(name)
            todo += NAMES[name]
    return frozenset(types)
