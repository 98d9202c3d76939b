"""The configuration of the network and its public libraries, after any masterchain block."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft
from tonlake.ingest.decode.cell.dictionary_writer import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.context import NetworkConfig
from tonlake.lake.schema import BLOCKS, CONFIG_PARAMS, LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.ingest.derive.contract.world import World

_PARAM_BITS, _LIBRARY_BITS = 32, 256
_VERSION_PARAM, _VERSION_TAG = 8, 0xC4  # capabilities#c4 version:uint32 capabilities:uint64
_KEPT = 8

Params = dict[int, bytes]


class Network:
    """Configurations and libraries of one commit and of the lake before it."""

    def __init__(self, world: World, first: int) -> None:
        """Read them for the masterchain blocks from ``first`` on."""
        self._configs = _read_configs(world, first)
        self._version = _read_version(world)
        self._changes = _read_libraries(world, first)
        self._joined: dict[int | None, NetworkConfig] = {}

    def find_config(self, mc_seqno: int) -> NetworkConfig:
        """Return the configuration after a block.

        Where the lake begins after the last key block, it says the version of the blocks alone.
        """
        since = max((at for at in self._configs if at <= mc_seqno), default=None)
        if since not in self._joined:
            params = _make_params(self._version) if since is None else self._configs[since]
            self._joined[since] = _join_config(tuple(sorted(params.items())))
        return self._joined[since]

    def is_public(self, library: bytes, mc_seqno: int) -> bool:
        """Tell whether a library is public after a block."""
        said = [at for at in self._changes if at[1] == library and at[0] <= mc_seqno]
        return bool(said) and max(said)[2]


def join_library(library: bytes, boc: bytes) -> bytes:
    """Return Hashmap 256 ^Cell with one library."""
    return _join_cells({int.from_bytes(library, "big"): boc}, _LIBRARY_BITS)


def _join_cells(cells: Mapping[int, bytes], key_bits: int) -> bytes:
    """Return Hashmap n ^Cell as bag, given the bag of each cell."""
    tree = CellTree()
    entries = [(key, graft(tree, parse_boc(boc))) for key, boc in sorted(cells.items())]
    return serialize_boc(tree, [build_hashmap(tree, entries, key_bits)])


@lru_cache(_KEPT)
def _join_config(params: tuple[tuple[int, bytes], ...]) -> NetworkConfig:
    unsigned = {number & (1 << _PARAM_BITS) - 1: boc for number, boc in params}
    return NetworkConfig(_join_cells(unsigned, _PARAM_BITS), dict(params))


def _make_params(version: int) -> Params:
    builder = CellBuilder().store_uint(_VERSION_TAG, 8).store_uint(version, 32).store_uint(0, 64)
    return {_VERSION_PARAM: serialize_boc(builder.tree, [builder.end()])}


def _read_configs(world: World, first: int) -> dict[int, Params]:
    columns = ("mc_seqno", "param", "boc")
    newest = next(world.list_rows(CONFIG_PARAMS.name, columns, first), [])
    last = max((row[0] for row in newest), default=0)
    rows = [row for row in newest if row[0] == last]
    fresh = world.tables.get(CONFIG_PARAMS.name)
    if fresh is not None:
        rows += zip(*(fresh[name].to_pylist() for name in columns), strict=True)
    configs: dict[int, Params] = {}
    for mc_seqno, param, boc in rows:
        configs.setdefault(mc_seqno, {})[param] = boc
    return configs


def _read_version(world: World) -> int:
    """Return the greatest global version that blocks of the commit were made with."""
    blocks = world.tables.get(BLOCKS.name)
    versions = () if blocks is None else blocks["gen_software_version"].to_pylist()
    return max((version for version in versions if version is not None), default=0)


def _read_libraries(world: World, first: int) -> list[tuple[int, bytes, bool]]:
    columns = ("mc_seqno", "hash", "present")
    rows = [row for file in world.list_rows(LIBRARIES.name, columns, first) for row in file]
    fresh = world.tables.get(LIBRARIES.name)
    if fresh is not None:
        rows += zip(*(fresh[name].to_pylist() for name in columns), strict=True)
    return [(mc_seqno, library, present) for mc_seqno, library, present in rows]
