"""Transactions and messages of every kind, written field by field, with the expected columns."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.ingest.hashmaps import build_currencies
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree

Columns = dict[str, Any]

GRAMS = st.sampled_from([0, 1, 255, 256, 10**9, (1 << 63) - 1])
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
UINT16 = st.integers(0, (1 << 16) - 1)
UINT32 = st.integers(0, (1 << 32) - 1)
HASH = st.binary(min_size=32, max_size=32)
CHANGES = {"unchanged": (0, 1), "frozen": (2, 2), "deleted": (3, 2)}
REASONS = {"no_state": (0, 2), "bad_state": (1, 2), "no_gas": (2, 2), "suspended": (6, 3)}
STATUSES = ("uninit", "frozen", "active", "nonexist")


class Fields:
    """Stores fields drawn by Hypothesis and remembers the column of each."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], tree: CellTree) -> None:
        self.draw = draw
        self.builder = CellBuilder(tree)
        self.columns: Columns = {}

    @property
    def tree(self) -> CellTree:
        return self.builder.tree

    def flag(self, name: str | None = None) -> bool:
        """Store a drawn bit, as column ``name``."""
        value: bool = self.draw(st.booleans())
        self.builder.store_bit(value)
        if name:
            self.columns[name] = value
        return value

    def grams(self, name: str) -> None:
        self.columns[name] = self.draw(GRAMS)
        self.builder.store_coins(self.columns[name])

    def maybe(self, store: Callable[[Any], None], argument: object) -> None:
        if self.flag():
            store(argument)

    def var_uint(self, name: str, length_bits: int) -> None:
        """Store VarUInteger."""
        self.columns[name] = self.draw(st.sampled_from([0, 1, 300, 65535]))
        self.builder.store_var_uint(self.columns[name], length_bits)

    def int32(self, name: str) -> None:
        self.columns[name] = self.draw(INT32)
        self.builder.store_int(self.columns[name], 32)

    def uint(self, name: str, bits: int) -> None:
        self.columns[name] = self.draw(st.integers(0, (1 << bits) - 1))
        self.builder.store_uint(self.columns[name], bits)

    def hash(self, name: str) -> None:
        """Store bits256."""
        self.columns[name] = self.draw(HASH)
        self.builder.store_bytes(self.columns[name])

    def choice(self, name: str, codes: dict[str, tuple[int, int]]) -> None:
        """Store one of several constructors without fields."""
        self.columns[name] = self.draw(st.sampled_from(sorted(codes)))
        self.builder.store_uint(*codes[self.columns[name]])

    def currencies(self, name: str, extra: str) -> None:
        """Store CurrencyCollection."""
        self.grams(name)
        amounts = self.draw(st.dictionaries(UINT32, st.integers(1, (1 << 248) - 1), max_size=3))
        if not amounts:
            self.builder.store_bit(0)
            return
        self.builder.store_maybe_ref(build_currencies(self.tree, amounts))
        shown = {str(key): str(amounts[key]) for key in sorted(amounts)}
        self.columns[extra] = json.dumps(shown, separators=(",", ":"))

    def child(self, fill: "Callable[[Fields], None]") -> None:
        """Store a reference to a cell filled by ``fill``; its columns belong here."""
        inner = Fields(self.draw, self.tree)
        fill(inner)
        self.builder.store_ref(inner.builder.end())
        self.columns |= inner.columns


def store_storage(to: Fields) -> None:
    """Store TrStoragePhase."""
    to.grams("storage_fees_collected")
    to.maybe(to.grams, "storage_fees_due")
    to.choice("storage_status_change", CHANGES)


def store_credit(to: Fields) -> None:
    """Store TrCreditPhase."""
    to.maybe(to.grams, "credit_due_fees_collected")
    to.currencies("credit", "credit_extra_currencies")


def _store_run(to: Fields) -> None:
    to.var_uint("compute_gas_used", 3)
    to.var_uint("compute_gas_limit", 3)
    to.maybe(lambda name: to.var_uint(name, 2), "compute_gas_credit")
    to.columns["compute_mode"] = to.draw(st.integers(-128, 127))
    to.builder.store_int(to.columns["compute_mode"], 8)
    to.int32("compute_exit_code")
    to.maybe(to.int32, "compute_exit_arg")
    to.uint("compute_vm_steps", 32)
    to.hash("compute_vm_init_state_hash")
    to.hash("compute_vm_final_state_hash")


def store_compute(to: Fields) -> None:
    """Store TrComputePhase."""
    runs = to.flag()
    to.columns["compute_skipped"] = not runs
    if not runs:
        to.choice("compute_skip_reason", REASONS)
        return
    for name in ("success", "msg_state_used", "account_activated"):
        to.flag(f"compute_{name}")
    to.grams("compute_gas_fees")
    to.child(_store_run)


def store_action(to: Fields) -> None:
    """Store TrActionPhase."""
    for name in ("success", "valid", "no_funds"):
        to.flag(f"action_{name}")
    to.choice("action_status_change", CHANGES)
    to.maybe(to.grams, "action_total_fwd_fees")
    to.maybe(to.grams, "action_total_action_fees")
    to.int32("action_result_code")
    to.maybe(to.int32, "action_result_arg")
    for name in ("tot_actions", "spec_actions", "skipped_actions", "msgs_created"):
        to.uint(f"action_{name}", 16)
    to.hash("action_list_hash")
    to.var_uint("action_tot_msg_size_cells", 3)
    to.var_uint("action_tot_msg_size_bits", 3)


def store_bounce(to: Fields) -> None:
    """Store TrBouncePhase."""
    to.choice("bounce", {"negfunds": (0, 2), "nofunds": (1, 2), "ok": (1, 1)})
    if to.columns["bounce"] == "negfunds":
        return
    to.var_uint("bounce_msg_size_cells", 3)
    to.var_uint("bounce_msg_size_bits", 3)
    if to.columns["bounce"] == "nofunds":
        to.grams("bounce_req_fwd_fees")
        return
    to.grams("bounce_msg_fees")
    to.grams("bounce_fwd_fees")


def _store_split(to: Fields) -> None:
    to.uint("split_info_cur_shard_pfx_len", 6)
    to.uint("split_info_acc_split_depth", 6)
    to.hash("split_info_this_addr")
    to.hash("split_info_sibling_addr")


def _store_prepare(to: Fields) -> None:
    to.builder.store_ref(CellBuilder(to.tree).store_uint(7, 4).end())


def _store_end(to: Fields) -> None:
    store_compute(to)
    if to.flag():
        to.child(store_action)
    to.flag("aborted")


def _store_ord(to: Fields) -> None:
    to.flag("credit_first")
    to.maybe(store_storage, to)
    to.maybe(store_credit, to)
    _store_end(to)
    to.maybe(store_bounce, to)
    to.flag("destroyed")


def _store_tick_tock(to: Fields) -> None:
    to.flag("is_tock")
    store_storage(to)
    _store_end(to)
    to.flag("destroyed")


def _store_split_prepare(to: Fields) -> None:
    _store_split(to)
    to.maybe(store_storage, to)
    _store_end(to)
    to.flag("destroyed")


def _store_split_install(to: Fields) -> None:
    _store_split(to)
    _store_prepare(to)
    to.flag("installed")


def _store_merge_prepare(to: Fields) -> None:
    _store_split(to)
    store_storage(to)
    to.flag("aborted")


def _store_merge_install(to: Fields) -> None:
    _store_split(to)
    _store_prepare(to)
    to.maybe(store_storage, to)
    to.maybe(store_credit, to)
    _store_end(to)
    to.flag("destroyed")


DESCRIPTIONS: dict[str, tuple[int, int, Callable[[Fields], None]]] = {
    "ord": (0b0000, 4, _store_ord),
    "storage": (0b0001, 4, store_storage),
    "tick_tock": (0b001, 3, _store_tick_tock),
    "split_prepare": (0b0100, 4, _store_split_prepare),
    "split_install": (0b0101, 4, _store_split_install),
    "merge_prepare": (0b0110, 4, _store_merge_prepare),
    "merge_install": (0b0111, 4, _store_merge_install),
}


def store_address(to: Fields, name: str) -> None:
    """Store any MsgAddress; only standard ones, and variable ones as long, have columns."""
    kind = to.draw(st.sampled_from(["std", "std", "none", "extern", "var"]))
    to.columns[f"{name}_kind"] = kind
    builder = to.builder
    if kind == "none":
        builder.store_uint(0, 2)
    elif kind == "extern":
        bits = to.draw(st.sampled_from([0, 1, 7, 64]))
        builder.store_uint(1, 2).store_uint(bits, 9).store_uint(0, bits)
    else:
        _store_internal_address(to, name, kind)


def _store_internal_address(to: Fields, name: str, kind: str) -> None:
    builder = to.builder.store_uint(2 if kind == "std" else 3, 2)
    depth = to.draw(st.sampled_from([0, 0, 1, 5, 30]))
    prefix = to.draw(st.integers(0, (1 << depth) - 1))
    builder.store_bit(depth > 0)
    if depth:
        builder.store_uint(depth, 5).store_uint(prefix, depth)
    workchain, account = to.draw(st.integers(-128, 127)), to.draw(HASH)
    if kind == "var":
        bits = to.draw(st.sampled_from([20, 256]))
        builder.store_uint(bits, 9).store_int(workchain, 32)
        if bits < 8 * len(account):
            builder.store_uint(5, bits)
            return
    else:
        builder.store_int(workchain, 8)
    builder.store_bytes(account)
    kept = int.from_bytes(account, "big") & ((1 << (256 - depth)) - 1)
    to.columns[f"{name}_workchain"] = workchain
    to.columns[name] = (kept | prefix << (256 - depth)).to_bytes(32, "big")


def store_content(draw: st.DrawFn, tree: CellTree, *, max_bits: int) -> CellBuilder:
    """Return the builder of a body: some bits and at most one reference."""
    builder = CellBuilder(tree)
    bits = draw(st.sampled_from([0, 1, 31, 32, 33, max_bits]))
    builder.store_uint(draw(st.integers(0, (1 << bits) - 1)), bits)
    if draw(st.booleans()):
        leaf = CellBuilder(tree).store_uint(draw(UINT16), 16).end()
        builder.store_ref(leaf)
    return builder


def store_state_init(draw: st.DrawFn, tree: CellTree) -> CellBuilder:
    """Return the builder of a StateInit with any of its fields."""
    builder = CellBuilder(tree)
    for bits in (5, 2):
        if draw(st.booleans()):
            builder.store_bit(1).store_uint(draw(st.integers(0, (1 << bits) - 1)), bits)
        else:
            builder.store_bit(0)
    for number in range(2):
        cell = CellBuilder(tree).store_uint(number, 9).end() if draw(st.booleans()) else None
        builder.store_maybe_ref(cell)
    return builder.store_bit(0)
