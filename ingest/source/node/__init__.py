"""A node's folder, read beside the node and never written.

tl           TL values of the node's stores
package      archive packages: entries by offset, or by scanning
rocks        RocksDB beside its owner, through private folders (scratch): followed or frozen
handle, state, globalindex, slice, celldb    what the stores hold
bundle       which shard blocks a masterchain block commits
archive      bundles out of slices and packages
recent       temporary packages, where the archive ends
zerofile     zero states
shardstate   whole shard states, and the hashes that blocks name for them
statefile    persistent states
source       a node's database folder as a source of blocks
packgroup, packs    archive packages without any index as a source of blocks
"""
