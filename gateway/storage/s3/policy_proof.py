# SPDX-License-Identifier: Apache-2.0
"""The proof of the policies of a profile, by the evaluator for its kind of store."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.scope.level import AccessLevel
from gateway.scope.location import Location, fold
from gateway.storage.s3 import oss_proof, r2_proof
from gateway.storage.s3.confinement import policy_builder
from gateway.storage.s3.proof import Dialect, prove_scope
from gateway.storage.s3.store_kinds import TRAITS, StoreKind

if TYPE_CHECKING:
    from gateway.storage.s3.profile import S3Profile

__all__ = ["prove"]


def prove(profile: "S3Profile", location: Location, level: AccessLevel, other_keys: Sequence[str]) -> list[str]:
    """Build the policy of a location and level, and return a text for each result that differs from what they require.

    An empty list is the proof. A level that the store cannot express has no policy and nothing to prove. Raises
    PolicyTooLarge and InvalidLocation.
    """
    if level not in TRAITS[profile.kind].levels:
        return []
    policy = policy_builder(profile)(location, level)
    match profile.kind:
        case StoreKind.R2:
            return [str(each) for each in r2_proof.prove_scope(policy, location, level, other_keys)]
        case StoreKind.OSS:
            owner = oss_proof.Owner(
                region=profile.region.removeprefix("oss-"), account=(profile.session_role_arn or "").split(":")[3]
            )
            return [str(each) for each in oss_proof.prove_scope(policy, location, level, other_keys, owner=owner)]
        case StoreKind.AWS | StoreKind.COMPATIBLE:
            return _prove_session_policy(profile, policy, location, level, other_keys)


def _prove_session_policy(
    profile: "S3Profile", policy: str, location: Location, level: AccessLevel, other_keys: Sequence[str]
) -> list[str]:
    dialect = Dialect.AWS if profile.escapes_known else Dialect.CASE_BLIND
    violations = prove_scope(policy, location, level, other_keys, dialect=dialect, partition=profile.partition)
    if dialect is Dialect.CASE_BLIND:
        # Such a store also allows the location in another case, where the catalog lets no other table be
        # (`BaseLocation.overlap_key`).
        own = fold(location.key_prefix)
        violations = [each for each in violations if each.key is None or not fold(each.key).startswith(own)]
    return [str(each) for each in violations]
