# SPDX-License-Identifier: Apache-2.0
"""What can be asked about the interface itself: its OpenAPI documents, and the page that shows them.

All of it is the same for everybody and is in the package that everybody can have, so no token is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.operation import Audience, OpenTo, ReadOperation


@dataclass(frozen=True)
class ShowApi(ReadOperation):
    """The page on which the interface can be read and tried (Swagger UI)."""

    endpoint: ClassVar[str] = "GET /swagger-ui"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.EVERYBODY)


@dataclass(frozen=True)
class GetApiAsset(ReadOperation):
    """A script or a style of that page."""

    endpoint: ClassVar[str] = "GET /swagger-ui/{asset}"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.EVERYBODY)


@dataclass(frozen=True)
class GetApiDocument(ReadOperation):
    """The OpenAPI document of the catalog (`catalog`) or of all the rest (`management`)."""

    endpoint: ClassVar[str] = "GET /api-docs/{api}/v1/openapi.json"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.EVERYBODY)
