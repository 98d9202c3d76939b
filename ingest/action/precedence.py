"""All rules in the order in which they are tried: what an earlier one took, a later one lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.action.protocol import (
    auction,
    cocoon,
    coffee,
    coffee_pool,
    coffee_staking,
    dns,
    election,
    ethena,
    evaa,
    jetton,
    jvault,
    layerzero,
    multisig,
    nft,
    nominator,
    sale,
    stonfi,
    subscription,
    tgbtc,
    tonco,
    tonco_liquidity,
    tonstakers,
    vesting,
)

if TYPE_CHECKING:
    from ingest.action.rule import Rule

CLASSIFIER_VERSION = 1
"""Raised with every change that makes other actions of the same trace."""

RULES: tuple[Rule, ...] = (
    nft.MINT_RULE,
    tonstakers.DELAYED_WITHDRAW_RULE,
    # 3-4 dedust deposits
    tonstakers.DEPOSIT_RULE,
    tonstakers.WITHDRAW_RULE,
    *multisig.RULES,
    vesting.SEND_RULE,
    vesting.ADD_WHITELIST_RULE,
    *nominator.RULES,
    jetton.TRANSFER_RULE,
    jetton.PTON_RULE,
    # 17 dedust withdraw
    jetton.BURN_RULE,
    # 19 dedust swap
    stonfi.SWAP_V1_RULE,
    stonfi.SWAP_RULE,
    tonco.SWAP_RULE,
    dns.RELEASE_RULE,
    dns.PURCHASE_RULE,
    sale.UPDATE_RULE,
    nft.TRANSFER_RULE,
    nft.TELEGRAM_PURCHASE_RULE,
    nft.PURCHASE_RULE,
    sale.LISTING_RULE,
    auction.TELEGRAM_START_RULE,
    auction.TELEGRAM_CANCEL_RULE,
    nft.DISCOVERY_RULE,
    dns.CHANGE_RULE,
    election.DEPOSIT_RULE,
    election.RECOVER_RULE,
    subscription.SUBSCRIBE_RULE,
    subscription.UNSUBSCRIBE_RULE,
    auction.BID_RULE,
    auction.OUTBID_RULE,
    sale.CANCEL_RULE,
    auction.FINISH_RULE,
    auction.END_RULE,
    ethena.WITHDRAWAL_REQUEST_RULE,
    jetton.MINT_RULE,
    ethena.DEPOSIT_RULE,
    # 46-47 stonfi v2 liquidity
    *jvault.RULES,
    *evaa.RULES,
    *tgbtc.RULES,
    tonco_liquidity.DEPOSIT_RULE,
    tonco.DEPLOY_POOL_RULE,
    tonco_liquidity.WITHDRAW_RULE,
    coffee_pool.DEPOSIT_RULE,
    coffee.SWAP_RULE,
    coffee_pool.WITHDRAW_RULE,
    coffee_pool.VAULT_RULE,
    coffee_pool.POOL_CREATOR_RULE,
    coffee_pool.POOL_RULE,
    *coffee_staking.RULES,
    *layerzero.RULES,
    *cocoon.RULES,
)
