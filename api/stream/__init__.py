"""Events as they happen: what commits bring, and what is pending, sent to subscribers."""
