"""The contract tab of an account: terms, members, disassembled code, get-methods."""
