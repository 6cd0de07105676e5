# SPDX-License-Identifier: Apache-2.0
"""The operator's rules for the gateway's own identity in Azure. Pure.

The author of a warehouse names an account and a filesystem, and the gateway's identity may reach more than the author
does. So the operator lists the filesystems. The rules are checked with every use, because settings can change.
"""

from gateway.scope.rules import IdentityRules
from gateway.storage.adls.credential import AdlsSystemIdentity, AnyAdlsCredential
from gateway.storage.adls.profile import AdlsProfile

__all__ = ["identity_refusal"]


def identity_refusal(profile: AdlsProfile, credential: AnyAdlsCredential, rules: IdentityRules) -> str | None:
    """Return why the credential may not be used for the filesystem of this profile; None if it may."""
    store = f"{profile.account_name}/{profile.filesystem}"
    if not isinstance(credential, AdlsSystemIdentity) or rules.allows_directly(store):
        return None
    if not rules.enabled:
        return (
            "Credentials of type azure-system-identity are not enabled on this server. Use the type client-credentials"
        )
    return (
        f"The operator does not allow the gateway's own identity for the filesystem {store!r}. The operator can list "
        "it in LAKEGATE__ADLS_SYSTEM_CREDENTIALS_FILESYSTEMS"
    )
