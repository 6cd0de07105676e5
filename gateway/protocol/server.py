# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for the server."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Name, StrictRequest, UserType


class LicenseStatus(Answer, frozen=True):
    """The license of this server, for clients of Lakekeeper that read it. No feature needs a license key."""

    license_type: str = "apache-2.0"
    valid: bool = True


class ServerInfo(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /info`. `lakekeeper-version`, which clients of Lakekeeper compare, is this server's version."""

    version: str
    lakekeeper_version: str
    bootstrapped: bool
    server_id: UUID
    authz_backend: str
    aws_system_identities_enabled: bool
    azure_system_identities_enabled: bool
    gcp_system_identities_enabled: bool
    queues: tuple[str, ...]
    license_status: LicenseStatus
    default_project_id: str | None = None


class BootstrapRequest(StrictRequest, frozen=True):
    """Request of `POST /bootstrap`."""

    accept_terms_of_use: bool
    is_operator: bool = False
    user_name: Name | None = None
    user_email: Annotated[str, msgspec.Meta(max_length=320)] | None = None
    user_type: UserType | None = None
