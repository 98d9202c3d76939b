"""The contract tab of an account: terms, members, code as instructions, get-methods."""
