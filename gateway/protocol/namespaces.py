# SPDX-License-Identifier: Apache-2.0
"""Bodies of the management endpoints for namespaces."""

from __future__ import annotations

from uuid import UUID

from gateway.iceberg.identifiers import Namespace
from gateway.protocol.base import Answer, Request


class MoveNamespaceRequest(Request, frozen=True):
    """Request of `POST …/namespace/{n}/move`. `destination` is the complete new path, with the new name last."""

    destination: tuple[str, ...]
    force: bool = False

    @property
    def identifier(self) -> Namespace:
        """Return the new path. Raises a CatalogError with code 400 if it is not a valid namespace."""
        return Namespace(self.destination)


class MovedNamespace(Answer, frozen=True, omit_defaults=True):
    """The new path of a moved namespace. A namespace of the top level has no parent."""

    namespace: tuple[str, ...]
    namespace_id: UUID
    parent_namespace_id: UUID | None = None
