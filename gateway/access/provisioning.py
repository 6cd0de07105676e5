# SPDX-License-Identifier: Apache-2.0
"""Determine the identity provider whose users and groups a provisioner keeps: one, and never another's.

A caller with a token of a provider keeps that provider's. A caller with a provisioning token of the gateway
(`identity/provisioning.py`) is `lakegate~scim-<provider>`: no provider can have the id `lakegate`, so no other caller
has such a name.
"""

from __future__ import annotations

from typing import Final

from gateway.access.actor import Actor

_OWN: Final = "lakegate~scim-"


def provisioner_of(provider_id: str) -> str:
    """The user id under which the tokens for a provider's directory come."""
    return _OWN + provider_id


def provider_kept_by(actor: Actor) -> str:
    """Return the provider whose users and groups this caller may keep, given the right to."""
    return actor.id.removeprefix(_OWN) if actor.id.startswith(_OWN) else actor.provider
