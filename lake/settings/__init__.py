"""All settings in one struct, with the origin of each value.

The order is defaults < TOML file < environment (``TONLAKE_<NAME>``) < command-line flags. Each
class extends the one before: access, liteserver, follow, stream, sql, metadata, whole.
"""

from lake.settings.loading import PREFIX, load_settings
from lake.settings.whole import NAMES, Settings, describe_settings

__all__ = ["NAMES", "PREFIX", "Settings", "describe_settings", "load_settings"]
