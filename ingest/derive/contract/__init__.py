"""What accounts are: wallets, jettons, NFTs, names, multisigs, vesting; told by code and data."""
