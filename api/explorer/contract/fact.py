"""Calls get-methods for the facts on the contract tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.api.chain.arguments import GetMethodParams, read_params
from tonlake.api.chain.run import run_get_method
from tonlake.api.errors import ApiError
from tonlake.ingest.errors import TvmError

if TYPE_CHECKING:
    from tonlake.api.explorer.frame import Question
    from tonlake.api.text.encoding import Address
    from tonlake.ingest.derive.tvm.call import Outcome


class Fact(msgspec.Struct, frozen=True):
    """A named fact about a contract; ``accounts`` are raw addresses, shown after the text."""

    name: str
    text: str = ""
    accounts: tuple[str, ...] = ()


def call_method(question: Question, address: Address, method: str) -> Outcome | str:
    """Return the outcome of a get-method without arguments, or the reason why it did not run."""
    try:
        params = read_params(GetMethodParams, {"address": str(address), "method": method})
        return run_get_method(question.call, params, params.method, [])[1]
    except (ApiError, TvmError) as error:
        return str(error)
