"""Runs get-methods in Python, without the TVM: the instructions that most of them consist of."""
