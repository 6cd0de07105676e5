# SPDX-License-Identifier: Apache-2.0
"""Operations on the API documentation: its OpenAPI documents, and the page that shows them.

They need no token: the content is part of the published package, and the same for every caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.operation import Audience, PublicAudience, ReadOperation


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
