"""Transactions to traces: every transaction belongs to one tree of messages."""
