"""Detects contracts by code and data: wallets, jettons, NFTs, domains, multisigs, vesting."""
