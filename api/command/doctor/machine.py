"""This machine and the settings: what is missing, and what is dangerous."""

from __future__ import annotations

import os
import resource
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tonlake.api.access.key import read_keys
from tonlake.api.command.doctor.finding import Finding
from tonlake.api.errors import KeyFileInvalid
from tonlake.api.http.address import is_own_machine
from tonlake.ingest.decode import native
from tonlake.ingest.derive.tvm.process import HOW_TO_INSTALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.api.settings import Settings

OPEN_FILES = 1024
"""Fewer are too few for a large lake's files and the connections of clients."""


def check_machine(settings: Settings) -> Iterator[Finding]:
    """Yield what concerns the machine: the decoder, the TVM, memory, open files."""
    yield Finding("decoder", "ok", f"blocks are decoded by: {native.describe()}")
    if find_spec("tonpy") is None:
        advice = "pip install 'tonlake[tvm]'"
        yield Finding("TVM", "warning", HOW_TO_INSTALL, advice)
    else:
        yield Finding("TVM", "ok", "get-methods can be run")
    memory_mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    wanted_mib = settings.lake.duckdb_memory_mib + settings.http.cache_mib
    text = f"{memory_mib:,} MiB, of which queries and kept answers may take {wanted_mib:,}"
    if wanted_mib > memory_mib // 2:
        yield Finding("memory", "warning", text, "lower the setting [lake] duckdb_memory_mib")
    else:
        yield Finding("memory", "ok", text)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and limit < OPEN_FILES:
        advice = f"ulimit -n {OPEN_FILES * 4}, or LimitNOFILE in the service's unit"
        yield Finding("open files", "warning", f"only {limit} may be open at once", advice)
    else:
        yield Finding("open files", "ok", f"{limit} may be open at once")


def check_access(settings: Settings) -> Iterator[Finding]:
    """Yield what concerns those who may ask: address, keys, limits, the upstream."""
    own = is_own_machine(settings.http.host)
    if own:
        yield Finding("address", "ok", f"{settings.http.host}: this machine alone may ask")
    elif settings.access.rate_limits == "off" and not settings.access.keys_required:
        yield Finding(
            "address",
            "warning",
            f"{settings.http.host}: others may ask as often as they like",
            "set [access] rate_limits to auto, or keys_required with keys_file",
        )
    else:
        yield Finding("address", "ok", f"{settings.http.host}: others may ask, within limits")
    yield from _check_keys(settings)
    library = settings.tvm.emulator_library
    if library and not Path(library).is_file():
        advice = "name the file in the setting [tvm] emulator_library, or leave it unset"
        yield Finding("emulator", "problem", f"there is no {library}", advice)
    if settings.upstream.url.startswith("http://"):
        text = "messages and the upstream's key are sent without encryption"
        yield Finding("upstream", "warning", text, "use https in the setting [upstream] url")


def _check_keys(settings: Settings) -> Iterator[Finding]:
    if not settings.access.keys_file:
        if settings.access.keys_required:
            advice = "name the file in the setting [access] keys_file"
            yield Finding("keys", "problem", "keys are required and there is no file", advice)
        return
    path = Path(settings.access.keys_file)
    try:
        count = len(read_keys(path))
        mode = path.stat().st_mode if path.exists() else 0
    except (KeyFileInvalid, OSError) as error:
        yield Finding("keys", "problem", str(error), "mend the file, or make keys anew")
        return
    if mode & 0o077:
        advice = f"chmod 600 {path}"
        yield Finding("keys", "warning", f"{path} can be read or written by others", advice)
    elif not count:
        advice = f"tonlake key add NAME --keys {path}"
        yield Finding("keys", "warning", f"{path} holds no key", advice)
    else:
        yield Finding("keys", "ok", f"{count} keys")
