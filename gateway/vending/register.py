# SPDX-License-Identifier: Apache-2.0
"""Build the entry of a vended credential in the register of live credentials.

The entry is built from the caller, the table and the credential. It contains no secret.
"""

from __future__ import annotations

from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.audit.audit_record import IssuedCredential
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.vending.vendor import Vended

__all__ = ["register_entry"]


def register_entry(
    actor: Actor,
    request_id: str,
    warehouse: ResolvedWarehouse,
    table_id: UUID,
    provider: str,
    vended: Vended,
    *,
    generic: bool,
) -> IssuedCredential:
    """Return the register entry of a credential that is about to be sent to the client.

    `actor` is the principal whose rights the credential has. For a table below a definer view, that is the view's
    owner.
    """
    principal, assumed_role = _holder(actor)
    return IssuedCredential(
        id=vended.id,
        request_id=request_id,
        principal=principal,
        assumed_role=assumed_role,
        engine=actor.engine,
        view_owner=None if actor.asked_by is None else actor.id,
        project_id=warehouse.project_id,
        warehouse_id=warehouse.id,
        kind=(ObjectType.GENERIC_TABLE if generic else ObjectType.TABLE).value,
        table_id=table_id,
        prefix=vended.prefix,
        level=vended.level.value,
        provider=provider,
        session_name=vended.session_name,
        policy_digest=vended.policy_digest,
        seconds=vended.lifetime,
        expires_at=vended.expires_at,
    )


def _holder(actor: Actor) -> tuple[str, UUID | None]:
    """Return (user that receives the credential, role that the user assumed, None if absent)."""
    if actor.asked_by is None:
        return actor.id, actor.assumed_role
    # The format of `Actor.as_owner`: `<user>`, or `<user> as <role>`.
    user, separator, role = actor.asked_by.rpartition(" as ")
    try:
        return (user, UUID(role)) if separator else (actor.asked_by, None)
    except ValueError:
        return actor.asked_by, None
