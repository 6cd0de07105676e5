# SPDX-License-Identifier: Apache-2.0
"""Endpoints for the deletion protection of namespaces, tables, views and generic tables."""

from __future__ import annotations

from gateway.access.operations.protection import GET_PROTECTION, SET_PROTECTION
from gateway.api.serves import replay_by, serve
from gateway.governance.protection import Protection

for reading, setting in zip(GET_PROTECTION, SET_PROTECTION, strict=True):
    serve(reading, Protection.get)
    serve(setting, Protection.set, replay=replay_by(reading, Protection.get))
