# SPDX-License-Identifier: Apache-2.0
"""Settings for warehouses that use the gateway's own identity in a cloud. Names and defaults are the reference's."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from gateway.scope.endpoint import ANY_NETWORK, check_endpoint
from gateway.scope.errors import InvalidStorageProfile
from gateway.scope.rules import IdentityRules
from gateway.settings.env import PREFIX, SettingsError
from gateway.settings.postgres import PostgresSettings

__all__ = ["SystemIdentities"]


class SystemIdentities(PostgresSettings, frozen=True, kw_only=True):
    """Fields of `Settings`."""

    enable_aws_system_credentials: Annotated[
        bool,
        Meta(
            description="Allow storage credentials of type `aws-system-identity`: the gateway's own identity in AWS. "
            "It assumes the roles that storage profiles name."
        ),
    ] = False
    s3_enable_direct_system_credentials: Annotated[
        bool,
        Meta(
            description="Allow the gateway's own identity in AWS without a role, for the buckets in "
            "`LAKEGATE__S3_SYSTEM_CREDENTIALS_BUCKETS`."
        ),
    ] = False
    s3_require_external_id_for_system_credentials: Annotated[
        bool,
        Meta(description="Let the gateway's own identity in AWS assume a role only with an external id."),
    ] = True
    s3_system_credentials_buckets: Annotated[
        tuple[str, ...],
        Meta(
            description="Buckets of warehouses that use the gateway's own identity in AWS. Empty: with a role any "
            "bucket that the role reaches, without a role none."
        ),
    ] = ()
    s3_system_credentials_endpoints: Annotated[
        tuple[str, ...],
        Meta(
            description="Custom endpoints (`scheme://host[:port]`) to which requests may be signed with the gateway's "
            "own identity in AWS. AWS's own endpoints need no entry."
        ),
    ] = ()

    def enabled_system_identities(self) -> frozenset[str]:
        """Return the clouds in which the gateway's own identity may be used."""
        return frozenset({"aws"} if self.enable_aws_system_credentials else ())

    def identity_rules(self) -> tuple[tuple[str, IdentityRules], ...]:
        """Return the rules for the gateway's own identity, by the type of storage profiles.

        Raises SettingsError for an invalid endpoint.
        """
        try:
            endpoints = tuple(
                check_endpoint(url, "endpoint", ANY_NETWORK) for url in self.s3_system_credentials_endpoints
            )
        except InvalidStorageProfile as wrong:
            raise SettingsError(f"{PREFIX}S3_SYSTEM_CREDENTIALS_ENDPOINTS: {wrong.message}") from None
        rules = IdentityRules(
            enabled=self.enable_aws_system_credentials,
            direct=self.s3_enable_direct_system_credentials,
            external_id_required=self.s3_require_external_id_for_system_credentials,
            stores=self.s3_system_credentials_buckets,
            endpoints=endpoints,
        )
        return (("s3", rules),)
