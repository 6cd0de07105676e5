# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints about the server."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Name, Request, UserType


class LicenseStatus(Answer, frozen=True):
    """Clients of the reference system read it; everything here is open."""

    license_type: str = "apache-2.0"
    valid: bool = True


class ServerInfo(Answer, frozen=True, omit_defaults=True):
    """`GET /info`. `lakekeeper-version` is what clients compare; it is this server's own version."""

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


class BootstrapRequest(Request, frozen=True):
    """`POST /bootstrap`."""

    accept_terms_of_use: bool
    is_operator: bool = False
    user_name: Name | None = None
    user_email: Annotated[str, msgspec.Meta(max_length=320)] | None = None
    user_type: UserType | None = None
