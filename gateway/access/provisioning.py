# SPDX-License-Identifier: Apache-2.0
"""Whose users and groups a provisioner keeps: those of one identity provider, and never another's.

Who comes with a token of a provider keeps that provider's. Who comes with one of the gateway's own tokens for
provisioning (`identity/provisioning.py`) is `lakegate~scim-<provider>`: no provider can have the id `lakegate`, so
nobody else comes by such a name.
"""

from __future__ import annotations

from typing import Final

from gateway.access.actor import Actor

_OWN: Final = "lakegate~scim-"


def provisioner_of(provider_id: str) -> str:
    """The user id under which the tokens for a provider's directory come."""
    return _OWN + provider_id


def provider_kept_by(actor: Actor) -> str:
    """The provider whose users and groups this caller may keep, given the right to."""
    return actor.id.removeprefix(_OWN) if actor.id.startswith(_OWN) else actor.provider
