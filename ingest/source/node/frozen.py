"""RocksDB as it was when it was opened, with pending merges of any kind readable."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rocksdict import AccessType, Options, Rdict

from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.rocks import PAUSE_S, TRIES_UNCHANGED, Store

if TYPE_CHECKING:
    from tonlake.ingest.source.node.scratch import Scratch


class FrozenStore(Store):
    """A store as it was when it was opened, with pending merges of any kind readable.

    rocksdict has no merge operator of the node's: a key with a pending merge would crash the
    process or end an iteration early. RocksDB's own StringAppendOperator without delimiter is
    named instead, so pending operands stand behind the value, oldest first.
    """

    def __init__(self, folder: Path, name: str, scratch: Scratch) -> None:
        """Open the store."""
        super().__init__(folder, name, scratch)
        failure = None
        for _ in range(TRIES_UNCHANGED):
            try:
                self._open_frozen()
            except SourceError as error:  # the owner may have moved files meanwhile
                self.close()
                failure = error
                time.sleep(PAUSE_S)
            else:
                return
        raise failure or SourceError(f"{self.name}: cannot be opened")

    def _open_frozen(self) -> None:
        private = self._private_folder()
        write_merge_options(private)
        with self._named_errors():
            options, families = Options.load_latest(str(private), ignore_unknown_options=True)
        self._link_manifest(self.look().manifest)
        # Without the column families' options the merge operator is not installed.
        self._open(options, AccessType.read_only(error_if_log_file_exist=False), families)


def write_merge_options(folder: Path) -> None:
    """Write an OPTIONS file that names a harmless merge operator.

    An empty store made on the spot gives the file to start from, so that it suits the RocksDB
    that will read it whatever the node's is.
    """
    with tempfile.TemporaryDirectory(dir=folder) as template:
        Rdict(template, options=Options(raw_mode=True)).close()
        (path,) = Path(template).glob("OPTIONS-*")
        text = path.read_text(encoding="utf-8")
        shutil.copy(Path(template) / "rocksdict-config.json", folder)
    operator = r"\1merge_operator={id=StringAppendOperator;delimiter=}"
    edited = re.sub(r"(?m)^(\s*)merge_operator=.*$", operator, text)
    (folder / path.name).write_text(edited, encoding="utf-8")
