"""Look-ups: sorted, memory-mapped runs that answer exact keys in microseconds.

A run holds what follows from the base rows of one unbroken range of masterchain blocks. Runs are
named in the log like data files, can be made anew from the data files at any time, and say
nothing that those do not. Blocks that no run covers yet are looked up in memory.
"""
