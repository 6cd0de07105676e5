# SPDX-License-Identifier: Apache-2.0
"""The operator's rules for the gateway's own identity in AWS. Pure.

The creator of a warehouse chooses bucket, role and endpoint, and the gateway's identity may reach more than the
creator. So these rules apply:

- Without a role, the operator must have listed the bucket. With a role, the request must name an external id, which the
  role's trust policy requires (IAM user guide, "The confused deputy problem").
- Requests with the identity are signed only for AWS's own endpoints, or for those that the operator listed.

The rules are checked at every use and not only when a warehouse is created, because settings can change.
"""

from gateway.scope.profile import IdentityRules
from gateway.storage.errors import ShortTermCredentialError, StorageDenied
from gateway.storage.s3.credential import AnyS3Credential, S3SystemIdentity
from gateway.storage.s3.profile import S3Profile
from gateway.storage.stored import identity_disabled

__all__ = ["require_own_files", "require_sessions"]


def require_own_files(profile: S3Profile, credential: AnyS3Credential, rules: IdentityRules) -> None:
    """Raise StorageDenied if the gateway may not use the credential for its own files."""
    if isinstance(credential, S3SystemIdentity):
        refusal = _refusal(profile, credential, profile.assume_role_arn, rules)
        if refusal is not None:
            raise StorageDenied(refusal)


def require_sessions(profile: S3Profile, credential: AnyS3Credential, role: str | None, rules: IdentityRules) -> None:
    """Raise ShortTermCredentialError if the credential may not assume `role`. The role is None for a store without
    roles.
    """
    if isinstance(credential, S3SystemIdentity):
        refusal = _refusal(profile, credential, role, rules)
        if refusal is not None:
            raise ShortTermCredentialError(refusal, "profile")


def _refusal(profile: S3Profile, credential: S3SystemIdentity, role: str | None, rules: IdentityRules) -> str | None:
    if not rules.enabled:
        return identity_disabled(S3SystemIdentity, "access-key")
    for field, endpoint in (("endpoint", profile.endpoint), ("sts-endpoint", profile.sts_endpoint)):
        if endpoint is not None and endpoint not in rules.endpoints:
            return (
                f"The gateway's own identity must not be used with the {field} of this storage profile. The operator "
                "can list it in LAKEGATE__S3_SYSTEM_CREDENTIALS_ENDPOINTS; AWS's own endpoints need no entry, so leave "
                "the field out"
            )
    listed = profile.bucket in rules.stores
    if role is None:
        if not rules.direct:
            return (
                "The gateway's own identity must not be used without a role. Set assume-role-arn in the storage "
                "profile, or let the operator set LAKEGATE__S3_ENABLE_DIRECT_SYSTEM_CREDENTIALS"
            )
        if not listed:
            return _not_listed(profile)
        return None
    if rules.stores and not listed:
        return _not_listed(profile)
    if rules.external_id_required and credential.external_id is None:
        return (
            "The gateway's own identity assumes a role only with an external id. Set external-id in the storage "
            "credential, and demand it in the role's trust policy"
        )
    return None


def _not_listed(profile: S3Profile) -> str:
    return (
        f"The operator does not allow the gateway's own identity for the bucket {profile.bucket!r}. The operator can "
        "list it in LAKEGATE__S3_SYSTEM_CREDENTIALS_BUCKETS"
    )
