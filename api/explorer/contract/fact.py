"""What a contract says of itself, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.api.chain.arguments import GetMethodParams
from tonlake.api.chain.get_method import run_get_method
from tonlake.api.chain.param import read_params
from tonlake.api.errors import ApiError
from tonlake.ingest.errors import TvmError

if TYPE_CHECKING:
    from tonlake.api.explorer.frame import Question
    from tonlake.api.text.address import Address
    from tonlake.ingest.derive.tvm.call import Outcome


class Fact(msgspec.Struct, frozen=True):
    """A line of a contract's terms; ``accounts`` are raw addresses, shown after the text."""

    name: str
    text: str = ""
    accounts: tuple[str, ...] = ()


def call_method(question: Question, address: Address, method: str) -> Outcome | str:
    """Return what a get-method without arguments returns, or why it could not be run."""
    try:
        params = read_params(GetMethodParams, {"address": str(address), "method": method})
        return run_get_method(question.call, params, params.method, [])[1]
    except (ApiError, TvmError) as error:
        return str(error)
