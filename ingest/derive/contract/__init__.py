"""What accounts are: wallets, jettons, NFTs, names, multisigs, vesting, by code and data."""
