"""Every limit and choice of the product: one struct, and where each value came from.

The order is defaults < TOML file < environment (``TONLAKE_<NAME>``) < command-line flags. Each
part extends the one before, since a struct has one base: access, liteserver, follow, stream, sql,
metadata, and then the whole.
"""

from lake.settings.loading import PREFIX, load_settings
from lake.settings.whole import NAMES, Settings, describe_settings

__all__ = ["NAMES", "PREFIX", "Settings", "describe_settings", "load_settings"]
