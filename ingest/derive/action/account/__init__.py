"""Interfaces of accounts, from rows of the lake."""
