"""Turns the bytes of a node into rows of the lake's tables.

source/      node folders, archive packages, lite servers
decode/      bags of cells, and the TL-B of blocks and states, to rows
assemble/    decoded blocks in chain order, cut into commits
derive/      traces, contracts and actions, which follow from the decoded rows
metadata/    off-chain token metadata
run/         pipeline, follower, upgrade
"""
