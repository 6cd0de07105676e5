# SPDX-License-Identifier: Apache-2.0
"""Prove the policies of a warehouse's credentials for random locations, without a store (`lakegate verify-scope`).

The canary (`canary.py`) shows with one location that the store enforces policies. The proof shows with many locations
that the policies are right: an evaluator that shares no code with their builder compares what they permit with the
location and the access level.
"""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidLocation, PolicyTooLarge
from gateway.scope.location import Location
from gateway.scope.profile import NoVending, StorageProfile
from gateway.storage.registry import prover_of

__all__ = ["ProofReport", "prove_locations", "random_locations"]

_MAX_SHOWN: Final = 50
_DEPTHS: Final = (1, 2, 3, 4, 8)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#: Characters of the segments of a location, by shape. The last two shapes need escapes or encodings.
_SHAPES: Final = (
    _LETTERS,
    _LETTERS + "-_.=",
    _LETTERS + " '()+,;@&",
    "äßéøλж中文日本",
    "ab*?$",
    "ab${}%",
)


class ProofReport(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The result of a proof.

    `policies` is the number of evaluated policies. `without-policy` is the number of pairs of location and level for
    which no policy is possible, so that no credential is vended. `violations` are texts of the first 50 differences.
    """

    policies: int
    without_policy: int
    violations: tuple[str, ...]

    @property
    def proven(self) -> bool:
        """Return True if policies were evaluated, and each agrees with its location and level."""
        return self.policies > 0 and not self.violations


def prove_locations(profile: StorageProfile, *, count: int, seed: int) -> ProofReport | None:
    """Prove the policies of every access level for `count` random locations below the warehouse's base location.

    Each policy is also evaluated for keys of the other locations. Return None if the warehouse vends no credentials or
    its provider has no policies.
    """
    prove = prover_of(profile)
    if prove is None or isinstance(profile.downscoping, NoVending):
        return None
    locations = random_locations(profile, count=count, seed=seed)
    policies, without, violations = 0, 0, list[str]()
    for number, location in enumerate(locations):
        # Three other locations are enough, because the evaluator adds neighbours of `location`.
        others = [f"{other.key_prefix}data/f.parquet" for other in locations[number + 1 : number + 4]]
        others = [key for key in others if not key.startswith(location.key_prefix)]
        for level in AccessLevel:
            try:
                found = prove(profile, location, level, others)
            except (InvalidLocation, PolicyTooLarge):
                without += 1
                continue
            policies += 1
            violations += [f"{location} {level}: {text}" for text in found]
    return ProofReport(policies=policies, without_policy=without, violations=tuple(violations[:_MAX_SHOWN]))


def random_locations(profile: StorageProfile, *, count: int, seed: int) -> list[Location]:
    """Return distinct locations of all shapes and depths below the base location. They contain only characters that the
    profile allows.
    """
    source = Random(seed)  # noqa: S311 - test data, which the seed must reproduce
    base, found = profile.base_location(), dict[str, Location]()
    for attempt in range(count * 20):
        if len(found) >= count:
            break
        shape = _SHAPES[attempt % len(_SHAPES)]
        segments = [_segment(source, shape) for _ in range(source.choice(_DEPTHS))]
        if attempt % 5 == 0 and found:
            # A sibling whose name begins with the name of an earlier location.
            segments = list(source.choice(list(found.values())).segments[len(base.segments) :])
            segments[-1] += source.choice("0x")
        try:
            location = base.child(*segments, escapes_known=profile.escapes_known)
        except InvalidLocation:
            continue
        found.setdefault(location.text, location)
    return list(found.values())


def _segment(source: Random, shape: str) -> str:
    return "".join(source.choice(shape) for _ in range(source.choice((1, 2, 8, 36))))
