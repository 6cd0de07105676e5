# SPDX-License-Identifier: Apache-2.0
"""Bodies of the management endpoints about namespaces."""

from __future__ import annotations

from uuid import UUID

from gateway.iceberg.identifiers import Namespace
from gateway.protocol.base import Answer, Request


class MoveNamespaceRequest(Request, frozen=True):
    """`POST …/namespace/{n}/move`: the whole new path, its last level being the new name."""

    destination: tuple[str, ...]
    force: bool = False

    @property
    def identifier(self) -> Namespace:
        """The new path. Raises 400 for what can be no namespace."""
        return Namespace(self.destination)


class MovedNamespace(Answer, frozen=True, omit_defaults=True):
    """Where a namespace is now. A namespace of the top level has no parent."""

    namespace: tuple[str, ...]
    namespace_id: UUID
    parent_namespace_id: UUID | None = None
