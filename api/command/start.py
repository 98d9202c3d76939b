"""Where the command ``tonlake`` begins: it loads what a command needs, which takes a moment."""

from __future__ import annotations

import signal
import sys
from typing import Any

from tonlake.lake.process.memory import share_with_arrow, without_pandas


def start(**options: Any) -> None:  # noqa: ANN401 - those of click
    """Run the command; Ctrl-C ends it at once, and silently, until it has begun its work."""
    # A process started with Ctrl-C ignored, such as a job in the background, keeps ignoring it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    share_with_arrow()
    with without_pandas():
        from tonlake.api.command.main import main  # noqa: PLC0415 - this takes a part of it

        try:
            main(**options)
        except OSError as error:  # a full disk behind stdout, for one
            from tonlake.lake.command.cli import describe_error  # noqa: PLC0415 - as above

            sys.exit(f"error: {describe_error(error)}")
