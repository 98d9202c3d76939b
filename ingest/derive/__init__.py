"""Derives rows from base rows, in explicit stages: traces, contracts, actions and bodies."""
