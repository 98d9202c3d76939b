"""Ids of get-methods."""

import pytest

from tonlake.ingest.derive.tvm.call import method_id


@pytest.mark.parametrize(
    ("name", "number"),
    [("seqno", 85143), ("get_public_key", 78748), ("get_jetton_data", 106029), ("", 65536)],
)
def test_ids_of_names(name: str, number: int) -> None:
    assert method_id(name) == number
