# SPDX-License-Identifier: Apache-2.0
"""Yield the keys of objects by which the proofs of all providers test a policy of vended credentials.

The code that builds policies does not use them.
"""

from collections.abc import Iterator

__all__ = ["neighbours"]


def neighbours(path: str) -> Iterator[str]:
    """Yield keys that must not match the policy of `path`, but would match a pattern with a wildcard in one segment or
    with an open end.
    """
    segments = path.split("/")
    for index, segment in enumerate(segments):
        for other in ("x", "", segment + "0", "x" + segment, segment[:-1], segment.swapcase() + "_"):
            yield "/".join((*segments[:index], other, *segments[index + 1 :], "data/f"))
        yield "/".join((*segments[:index], *segments[index + 1 :], "f"))
        yield "/".join((*segments[:index], "x", *segments[index:], "f"))
    yield from (path, path + "0", path + "0/f", path + "x/" + path + "/f", "x/" + path + "/f")
