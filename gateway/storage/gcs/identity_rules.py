# SPDX-License-Identifier: Apache-2.0
"""The operator's rules for the gateway's own identity in Google Cloud. Pure.

The author of a warehouse names a bucket, and the gateway's identity may reach more buckets than the author does. So the
operator lists the buckets. The rules are checked with every use, because settings can change.
"""

from gateway.scope.rules import IdentityRules
from gateway.storage.gcs.credential import AnyGcsCredential, GcsSystemIdentity
from gateway.storage.gcs.profile import GcsProfile

__all__ = ["identity_refusal"]


def identity_refusal(profile: GcsProfile, credential: AnyGcsCredential, rules: IdentityRules) -> str | None:
    """Return why the credential may not be used for the bucket of this profile; None if it may."""
    if not isinstance(credential, GcsSystemIdentity) or rules.allows_directly(profile.bucket):
        return None
    if not rules.enabled:
        return (
            "Credentials of type gcp-system-identity are not enabled on this server. Use the type service-account-key"
        )
    return (
        f"The operator does not allow the gateway's own identity for the bucket {profile.bucket!r}. The operator can "
        "list it in LAKEGATE__GCS_SYSTEM_CREDENTIALS_BUCKETS"
    )
