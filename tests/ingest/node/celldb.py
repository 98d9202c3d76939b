"""A node's celldb as it is now: the cells of the states that the node itself keeps."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

from ingest.node.rocks import Store
from ingest.node.scratch import Scratch

HASH_BYTES, DEPTH_BYTES = 32, 2


class CellDb(Store):
    """A store as it was when it was opened, with pending merges of any kind readable.

    rocksdict has no merge operator of the node's: a key with a pending merge would crash the
    process. RocksDB's own StringAppendOperator without delimiter is named instead, so pending
    changes of a cell's count stand behind its record.
    """

    def __init__(self, db_dir: Path) -> None:
        """Open the celldb of a node's folder."""
        super().__init__(db_dir / "celldb", "celldb", Scratch())
        private = self._private_folder()
        write_merge_options(private)
        options, families = Options.load_latest(str(private), ignore_unknown_options=True)
        self._link_manifest(self.look().manifest)
        # Without the column families' options the merge operator is not installed.
        self._open(options, AccessType.read_only(error_if_log_file_exist=False), families)

    def read_cell(self, cell_hash: bytes) -> tuple[bytes, list[bytes]] | None:
        """Return a cell's descriptors with its data, and the keys of its children."""
        value = self.get(cell_hash)
        if value is None:
            return None
        d1, d2 = value[4:6]  # behind the count
        at = 6 + (d2 + 1) // 2
        body, children = value[4:at], []
        for _ in range(d1 & 7):
            levels = value[at].bit_count() + 1
            at += 1 + levels * HASH_BYTES  # a hash of each level, the last one the child's own
            children.append(value[at - HASH_BYTES : at])
            at += levels * DEPTH_BYTES
        return body, children

    def close(self) -> None:
        """Let go of the store."""
        super().close()
        self._scratch.close()


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
