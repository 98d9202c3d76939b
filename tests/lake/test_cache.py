"""The cache of values by weight."""

from tonlake.lake.cache import Cache


def test_what_was_used_longest_ago_goes_first() -> None:
    cache: Cache[str, str] = Cache(6, lambda _key, value: len(value))
    for name in "abc":
        assert cache.put(name, 2 * name) == 2 * name
    assert (cache.get("a"), cache.get("z")) == ("aa", None)
    cache.put("d", "d")
    assert ([name for name in "abcd" if cache.get(name)], cache.weight) == (["a", "c", "d"], 5)
    cache.put("a", "a")
    assert (cache.pop("c"), cache.pop("c"), cache.weight) == ("cc", None, 2)
    cache.put("e", "too long")
    assert (cache.get("a"), cache.get("e"), cache.weight) == (None, None, 0)
