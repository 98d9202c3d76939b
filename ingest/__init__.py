"""Ingest: a node's bytes to rows that fit the lake's schema.

node/        files of a node: packages, indexes, block handles, celldb, state
cell/        bags of cells: read, write, hash
block/       TL-B of a block to rows
source       where blocks come from
pipeline     source to decode to tonlake.lake.commit.commit
"""
