"""Entry point of the command ``tonlake``; loads the imports of a command, which takes a moment."""

import gc
import os
import signal
import sys
from typing import Any

from tonlake.lake.process import share_with_arrow
from tonlake.lake.system import keep_heap_small


def start(**options: Any) -> None:  # noqa: ANN401 - those of click
    """Run the command; until it begins its work, Ctrl-C ends it at once and silently."""
    # A process started with SIGINT ignored, such as a background job, keeps ignoring it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    share_with_arrow()
    keep_heap_small()  # the most private memory of a server or an ingest falls
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads only wait, busily
    gc.disable()  # collections while modules are loaded take a fifth of a second and find nothing
    from tonlake.api.command.main import main  # noqa: PLC0415 - part of the loading

    try:
        main(**options)
    except OSError as error:  # such as a full disk that stdout writes to
        from tonlake.lake.command.cli import describe_error  # noqa: PLC0415 - as above

        sys.exit(f"error: {describe_error(error)}")
