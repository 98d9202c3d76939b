"""Read the files of a TON node: packages, indexes, block handles, celldb and state."""
