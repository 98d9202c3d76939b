"""Reads blocks and states from a node's folder, which is never written.

tl           TL values in the node's stores
package      archive packages: read entries by offset, or scan for them
rocks        opens RocksDB while the node runs, through private folders
slice, celldb    contents of the stores
archive      masterchain blocks and the shard blocks they commit, from slices and packages
recent       temporary packages: blocks after the end of the archive
statefile    whole shard states by block, and those in files: zero and persistent states
source       a node's database folder as a block source
packs        archive packages without an index as a block source
"""
