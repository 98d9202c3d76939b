"""Caches rows shared by get-method runs on many past states, and reads them in bulk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.queries.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.queries.reader import Row

    Memory = dict[str, dict[Any, list[Row]]]
    """Rows by query and key."""

_LISTED = {"v2/master_ids": ("seqnos", "seqno"), "v2/shard_utimes": ("mc_seqnos", "mc_seqno")}
"""Queries by a list of keys: the parameter, and the column with the key of a row."""

_CONFIG = "v2/config_params"
_LAST, _HUNDREDTHS = 16, 17
"""Previous masterchain blocks that a contract can query, and those divisible by 100."""


class PastReader(Reader):
    """A reader that caches rows about masterchain blocks in ``known``, which readers share."""

    def __init__(self, *place: Any, known: Memory, **options: Any) -> None:  # noqa: ANN401 - as Reader
        """Take the arguments of ``Reader`` and the cache."""
        super().__init__(*place, **options)
        self._known = known

    def rows(self, name: str, **parameters: Any) -> list[Row]:  # noqa: ANN401 - as Reader
        """Run one query as ``Reader.rows``."""
        if name == _CONFIG:
            known = self._known.setdefault(name, {})
            key = parameters["mc_seqno"]
            if key not in known:
                known[key] = super().rows(name, **parameters)
            return known[key]
        if name in _LISTED:
            return self._list(name, *_LISTED[name], **parameters)
        return super().rows(name, **parameters)

    def _list(self, name: str, parameter: str, column: str, **parameters: Any) -> list[Row]:  # noqa: ANN401 - as above
        known = self._known.setdefault(name, {})
        fresh = [key for key in parameters[parameter] if key not in known]
        if fresh:
            found: dict[int, list[Row]] = {key: [] for key in fresh}
            for row in super().rows(name, **{parameter: fresh}):
                found[row[column]].append(row)
            known.update(found)
        return [row for key in parameters[parameter] for row in known[key]]


def prepare(reader: Reader, seqnos: Iterable[int]) -> None:
    """Prefetch the network context of contracts after these masterchain blocks."""
    chosen = sorted(set(seqnos))
    near = {max(0, seqno - back) for seqno in chosen for back in range(_LAST)}
    far = {max(0, seqno // 100 - back) * 100 for seqno in chosen for back in range(_HUNDREDTHS)}
    reader.rows("v2/master_ids", seqnos=sorted(near | far))
    reader.rows("v2/shard_utimes", mc_seqnos=chosen)
