"""What tokens say of themselves outside of the chain, fetched where somebody wants it."""
