# SPDX-License-Identifier: Apache-2.0
"""Operations on the server: bootstrap, server information, client configuration, documentation, pages, policy
bundles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, Name, StrictRequest, UserType
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import EventDeclaration, EventPerFurtherChange
from gateway.access.nouns.refs import WarehouseNameRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import Audience, ChangeOperation, PublicAudience, ReadOperation
from gateway.access.request import InBody, InPath


@dataclass(frozen=True)
class GetServerInfo(ReadOperation):
    """Return the version, the server id, and whether the server was bootstrapped."""

    endpoint: ClassVar[str] = "GET /management/v1/info"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED, "every client needs the response before its first operation"
    )


@dataclass(frozen=True)
class Bootstrap(ChangeOperation):
    """Make the caller the first administrator. This is possible once."""

    endpoint: ClassVar[str] = "POST /management/v1/bootstrap"
    event: ClassVar[EventDeclaration] = EventPerFurtherChange()
    returns: ClassVar[int] = 204
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED, "no principal can hold a right before the first administrator exists"
    )
    request: InBody[BootstrapRequest]


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


@dataclass(frozen=True)
class GetConfig(ReadOperation):
    """Return defaults, overrides and the endpoints that the caller may use in a warehouse."""

    endpoint: ClassVar[str] = "GET /catalog/v1/config"
    warehouse: WarehouseNameRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_CONFIG, self.warehouse),)


@dataclass(frozen=True)
class ShowApi(ReadOperation):
    """Show the API documentation (Swagger UI)."""

    endpoint: ClassVar[str] = "GET /swagger-ui"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)


@dataclass(frozen=True)
class GetApiAsset(ReadOperation):
    """Return a script or a style of the API documentation."""

    endpoint: ClassVar[str] = "GET /swagger-ui/{asset}"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)


@dataclass(frozen=True)
class GetApiDocument(ReadOperation):
    """Return the OpenAPI document of the catalog (`catalog`) or of everything else (`management`)."""

    endpoint: ClassVar[str] = "GET /api-docs/{api}/v1/openapi.json"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)


@dataclass(frozen=True)
class ShowUi(ReadOperation):
    """Show the console: users sign in, browse the catalog, and see and change access."""

    endpoint: ClassVar[str] = "GET /ui"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)


@dataclass(frozen=True)
class GetUiAsset(ReadOperation):
    """Return a module or a style of the console. Its address begins with a digest of all files."""

    endpoint: ClassVar[str] = "GET /ui/{digest}/{file_path}"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)


@dataclass(frozen=True)
class GetHealth(ReadOperation):
    """Return the state of each dependency. It contains no data and no users, so load balancers need no token."""

    endpoint: ClassVar[str] = "GET /health"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)


@dataclass(frozen=True)
class GetPolicyBundle(ReadOperation):
    """Return the bundle of policies for the OPA of the gateway (`gateway`) or for the OPA of Trino (`trino`)."""

    endpoint: ClassVar[str] = "GET /management/v1/policy-bundle/{bundle}"
    bundle: InPath[str]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_POLICIES, ServerRef()),)

    def facts(self) -> Facts:
        return {"bundle": self.bundle}
