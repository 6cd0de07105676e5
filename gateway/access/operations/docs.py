# SPDX-License-Identifier: Apache-2.0
"""What can be asked about the interface itself: its OpenAPI documents, and the page that shows them.

All of it is the same for everybody and is in the package that everybody can have, so no token is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.operation import Operation


@dataclass(frozen=True)
class ShowApi(Operation):
    """The page on which the interface can be read and tried (Swagger UI)."""

    endpoint: ClassVar[str] = "GET /swagger-ui"
    open_to_all: ClassVar[bool] = True


@dataclass(frozen=True)
class GetApiAsset(Operation):
    """A script or a style of that page."""

    endpoint: ClassVar[str] = "GET /swagger-ui/{asset}"
    open_to_all: ClassVar[bool] = True


@dataclass(frozen=True)
class GetApiDocument(Operation):
    """The OpenAPI document of the catalog (`catalog`) or of all the rest (`management`)."""

    endpoint: ClassVar[str] = "GET /api-docs/{api}/v1/openapi.json"
    open_to_all: ClassVar[bool] = True
