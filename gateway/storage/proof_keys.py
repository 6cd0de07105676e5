# SPDX-License-Identifier: Apache-2.0
"""Keys on which the proofs of all providers evaluate a policy. No builder of a policy uses them."""

from collections.abc import Iterator

__all__ = ["neighbours"]


def neighbours(path: str) -> Iterator[str]:
    """Yield keys that a pattern with a wildcard in any one segment, or without an anchor at either end, would match."""
    segments = path.split("/")
    for index, segment in enumerate(segments):
        for other in ("x", "", segment + "0", "x" + segment, segment[:-1], segment.swapcase() + "_"):
            yield "/".join((*segments[:index], other, *segments[index + 1 :], "data/f"))
        yield "/".join((*segments[:index], *segments[index + 1 :], "f"))
        yield "/".join((*segments[:index], "x", *segments[index:], "f"))
    yield from (path, path + "0", path + "0/f", path + "x/" + path + "/f", "x/" + path + "/f")
