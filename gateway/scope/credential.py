# SPDX-License-Identifier: Apache-2.0
"""Interfaces of storage credentials, for every provider. The `repr` of a credential shows no secret."""

from datetime import datetime
from typing import ClassVar, Protocol

__all__ = ["Credential", "TemporaryCredential"]


class Credential(Protocol):
    """A credential for a store: the stored one of a warehouse, or a temporary one."""

    provider: ClassVar[str]
    """The type of the storage profiles that the credential is for."""

    @property
    def digest(self) -> str:
        """Return an identifier of the credential for cache keys. It does not contain the credential."""
        ...


class TemporaryCredential(Credential, Protocol):
    """A credential that expires and may be confined to one location."""

    @property
    def expires_at(self) -> datetime:
        """Return the expiry as an aware datetime in UTC."""
        ...
