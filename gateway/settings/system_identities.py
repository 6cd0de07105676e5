# SPDX-License-Identifier: Apache-2.0
"""Settings for warehouses that use the gateway's own identity in a cloud. Names and defaults are those of
Lakekeeper.
"""

from __future__ import annotations

from gateway.scope.endpoint import ANY_NETWORK, check_endpoint
from gateway.scope.errors import InvalidStorageProfile
from gateway.scope.profile import IdentityRules
from gateway.settings.env import PREFIX, SettingsError
from gateway.settings.postgres import PostgresSettings

__all__ = ["SystemIdentities"]


class SystemIdentities(PostgresSettings, frozen=True, kw_only=True):
    """Fields of `Settings`."""

    enable_aws_system_credentials: bool = False
    """Allow storage credentials of type `aws-system-identity`: the gateway's own identity in AWS. It assumes the roles
    that storage profiles name.
    """
    s3_enable_direct_system_credentials: bool = False
    """Allow the gateway's own identity in AWS without a role, for the buckets in
    `LAKEGATE__S3_SYSTEM_CREDENTIALS_BUCKETS`.
    """
    s3_require_external_id_for_system_credentials: bool = True
    """Let the gateway's own identity in AWS assume a role only with an external id."""
    s3_system_credentials_buckets: tuple[str, ...] = ()
    """Buckets of warehouses that use the gateway's own identity in AWS. Empty: with a role any bucket that the role
    reaches, without a role none.
    """
    s3_system_credentials_endpoints: tuple[str, ...] = ()
    """Custom endpoints (`scheme://host[:port]`) to which requests may be signed with the gateway's own identity in AWS.
    AWS's own endpoints need no entry.
    """

    enable_gcp_system_credentials: bool = False
    """Allow storage credentials of type `gcp-system-identity`: the gateway's own identity in Google Cloud, for the
    buckets in `LAKEGATE__GCS_SYSTEM_CREDENTIALS_BUCKETS`.
    """
    gcs_system_credentials_buckets: tuple[str, ...] = ()
    """Buckets of warehouses that use the gateway's own identity in Google Cloud. Empty: none."""
    enable_azure_system_credentials: bool = False
    """Allow storage credentials of type `azure-system-identity`: the gateway's own identity in Azure, for the
    filesystems in `LAKEGATE__ADLS_SYSTEM_CREDENTIALS_FILESYSTEMS`.
    """
    adls_system_credentials_filesystems: tuple[str, ...] = ()
    """Filesystems (`account/filesystem`) of warehouses that use the gateway's own identity in Azure. Empty: none."""

    def enabled_system_identities(self) -> frozenset[str]:
        """Return the clouds in which the gateway's own identity may be used."""
        enabled = {
            "aws": self.enable_aws_system_credentials,
            "gcp": self.enable_gcp_system_credentials,
            "azure": self.enable_azure_system_credentials,
        }
        return frozenset(cloud for cloud, allowed in enabled.items() if allowed)

    def identity_rules(self) -> tuple[tuple[str, IdentityRules], ...]:
        """Return (type of storage profile, rules) pairs for the gateway's own identity.

        Raises SettingsError for an invalid endpoint.
        """
        try:
            endpoints = tuple(
                check_endpoint(url, "endpoint", ANY_NETWORK) for url in self.s3_system_credentials_endpoints
            )
        except InvalidStorageProfile as wrong:
            raise SettingsError(f"{PREFIX}S3_SYSTEM_CREDENTIALS_ENDPOINTS: {wrong.message}") from None
        aws = IdentityRules(
            enabled=self.enable_aws_system_credentials,
            direct=self.s3_enable_direct_system_credentials,
            external_id_required=self.s3_require_external_id_for_system_credentials,
            stores=self.s3_system_credentials_buckets,
            endpoints=endpoints,
        )
        # In these clouds a credential assumes no role, so the gateway's identities are always used directly.
        google = IdentityRules(
            enabled=self.enable_gcp_system_credentials, direct=True, stores=self.gcs_system_credentials_buckets
        )
        azure = IdentityRules(
            enabled=self.enable_azure_system_credentials, direct=True, stores=self.adls_system_credentials_filesystems
        )
        return (("s3", aws), ("gcs", google), ("adls", azure))
