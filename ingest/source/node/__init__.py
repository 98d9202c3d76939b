"""Reads blocks and states from a node's folder, which is never written.

tl           TL values in the node's stores
package      archive packages: read entries by offset, or scan for them
rocks        opens RocksDB while the node runs, through private folders (scratch)
handle, state, globalindex, slice, celldb    contents of the stores
bundle       the shard blocks that a masterchain block commits
archive      bundles from slices and packages
recent       temporary packages: blocks after the end of the archive
zerofile     zero states
shardstate   whole shard states, and their hashes as named by blocks
statefile    persistent states
source       a node's database folder as a block source
packgroup, packs    archive packages without an index as a block source
"""
