# SPDX-License-Identifier: Apache-2.0
"""What every storage credential has, whatever its provider. No `repr` of one shows a secret."""

from datetime import datetime
from typing import ClassVar, Protocol

__all__ = ["Credential", "TemporaryCredential"]


class Credential(Protocol):
    """A credential for a store: a warehouse's own, or a temporary one."""

    provider: ClassVar[str]
    """The type of the storage profiles that it fits."""

    @property
    def digest(self) -> str:
        """Names this credential in caches without holding it."""
        ...


class TemporaryCredential(Credential, Protocol):
    """A credential that ends by itself and may be confined to one location."""

    @property
    def expires_at(self) -> datetime:
        """Aware, in UTC."""
        ...
