# SPDX-License-Identifier: Apache-2.0
"""The endpoint of the management API that moves namespaces."""

from __future__ import annotations

from gateway.access.operations.namespace_moves import MoveNamespace
from gateway.api.serves import replay_by, serve
from gateway.governance.namespace_moves import NamespaceMoves

serve(MoveNamespace, NamespaceMoves.move, replay=replay_by(MoveNamespace, NamespaceMoves.repeat))
