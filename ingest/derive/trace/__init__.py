"""Assembles transactions into traces: every transaction belongs to one tree of messages."""
