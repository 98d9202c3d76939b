"""Runs get-methods and emulates transactions with the TVM of tonpy, in separate processes."""
