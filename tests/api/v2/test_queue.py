"""Sizes of message queues in the recorded form; unknown is not empty."""

from contextlib import closing
from pathlib import Path

from litestar.testing import TestClient

from tests.api.v2.conftest import Asker
from tests.api.v3.scene import MASTER_SHARD, Scene
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.ingest.decode.piece import list_queue_sizes
from tonlake.ingest.source.node.source import open_node


def test_every_shard_and_the_masterchain(ask: Asker, demo_node: Path) -> None:
    with closing(open_node(demo_node)) as source:
        last = source.last_mc_seqno()
        rows = list_queue_sizes([source.read_bundle(seqno) for seqno in range(1, last + 1)])
    sizes = {
        (row["workchain"], row["shard"], row["seqno"]): row["out_queue_size"]
        for row in rows.to_pylist()
    }
    for method in ("getOutMsgQueueSize", "getOutMsgQueueSizes"):
        found = ask(method)
        assert set(found) == {"@type", "shards", "ext_msg_queue_size_limit"}
        assert (found["@type"], found["ext_msg_queue_size_limit"]) == (
            "blocks.outMsgQueueSizes",
            8000,
        )
        ids = [one["id"] for one in found["shards"]]
        assert ids == [ask("getMasterchainInfo")["last"], *ask("getShards", seqno=last)["shards"]]
        for one in found["shards"]:
            assert set(one) == {"@type", "id", "size"}
            assert one["@type"] == "blocks.outMsgQueueSize"
            key = (one["id"]["workchain"], int(one["id"]["shard"]), one["id"]["seqno"])
            assert one["size"] == sizes[key]


def test_what_is_not_known_is_no_empty_queue(tmp_path: Path) -> None:
    for number, size in enumerate((None, 0, 17)):
        scene = Scene(1)
        master = {"workchain": -1, "shard": MASTER_SHARD, "seqno": 1, "mc_seqno": 1}
        scene.put("shard_blocks", **master)
        if size is not None:
            scene.put("queue_sizes", **master, out_queue_size=size)
        lake = scene.commit(tmp_path / str(number))
        with TestClient(create_app(lake, PATIENT)) as client:
            answer = client.get("/api/v2/getOutMsgQueueSize")
        if size is None:
            assert answer.status_code == 500
            assert "is not known" in answer.json()["error"]
        else:
            assert [one["size"] for one in answer.json()["result"]["shards"]] == [size]
