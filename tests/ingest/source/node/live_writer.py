"""Simulates a writing node: ``live_writer.py SOURCE_DB TARGET_DB MILLISECONDS``.

Writes the bundles of one node's folder into another folder, and prints each masterchain seqno
once it is complete. Small buffers make flushes, compactions and log changes frequent.
"""

import sys
import time
from contextlib import closing
from pathlib import Path

from tests.ingest.source.node.nodewriter import NodeWriter
from tonlake.ingest.source.node.source import open_node


def write_all(source_dir: Path, target_dir: Path, pause_ms: int) -> None:
    """Write everything, with a full compaction now and then."""
    writer = NodeWriter(target_dir, depth=1, slices=(0, 47, 140), buffer_bytes=1 << 14)
    with closing(open_node(source_dir)) as source, closing(writer):
        for mc_seqno in range(1, source.last_mc_seqno() + 1):
            writer.write_bundle(source.read_bundle(mc_seqno))
            if mc_seqno % 10 == 0:
                for store in (writer.state, *writer.open_slices.values()):
                    store.compact_range(None, None)
            print(mc_seqno, flush=True)  # noqa: T201 - the test reads it
            time.sleep(pause_ms / 1000)
        sys.stdin.read()


if __name__ == "__main__":
    write_all(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
