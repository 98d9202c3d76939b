"""The C extension that writes, opens and reads segments; without it SQL answers everything."""

from tonlake.lake.native import load_extension

NATIVE, _ = load_extension("tonlake.lake.index._rows")
