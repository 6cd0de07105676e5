# SPDX-License-Identifier: Apache-2.0
"""Storage providers of installed packages: entry points of the group `lakegate.storage`.

An entry point refers to a function without parameters that returns a `gateway.storage.provider.Provider`. The name of
the entry point is the `type` of its profiles and credentials, and the only name of its scheme of locations. A package
is imported only if the operator enabled it, or if the profile of a stored warehouse is of its type. A location, which
clients write, imports nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Final

from gateway.extensions import ExtensionGroup, NoSuchExtension, find_extension, modules_of_extensions
from gateway.scope.rules import StorageRules
from gateway.storage.provider import Provider

__all__ = ["ProviderUnusable", "imported", "is_allowed", "provided", "require_provided"]

_NAME: Final = re.compile(r"[a-z][a-z0-9+.-]{0,62}", re.ASCII)  # a scheme of RFC 3986, section 3.1, in lower case


class ProviderUnusable(Exception):
    """A package provides no valid storage provider under this name. The operator must change or remove it."""


def is_allowed(kind: str, rules: StorageRules) -> bool:
    """Return True if the operator enabled this type of storage."""
    return rules.extensions is None or kind in rules.extensions


def provided(kind: str, *, taken: Set[str]) -> Provider | None:
    """Return the provider of this type; None if no installed package has one.

    `taken` are the types and schemes of Lakegate's own providers. Raises ProviderUnusable.
    """
    if kind in taken or _NAME.fullmatch(kind) is None or kind not in _installed():
        return None
    return require_provided(kind, taken=taken)


def imported(kind: str, *, taken: Set[str]) -> Provider | None:
    """Return the provider of this type if its package is imported already. None otherwise.

    `open_clients` imports the packages that the operator enabled, before the first request. `taken` is as above.
    """
    if sys.modules.get(_installed().get(kind, "")) is None:
        return None
    return provided(kind, taken=taken)


def require_provided(kind: str, *, taken: Set[str]) -> Provider:
    """Return the provider of this type. Raises ProviderUnusable if there is none, or if it is not valid."""
    if kind in taken:
        raise ProviderUnusable(
            f"The storage type {kind!r} is one of Lakegate's own, so no package can provide it. Remove it from "
            "LAKEGATE__STORAGE__EXTENSIONS"
        )
    return _opened(kind)


@lru_cache(maxsize=1)
def _installed() -> Mapping[str, str]:
    """Return the module of each installed type."""
    # Packages do not change while a process runs. The cache keeps unknown schemes in requests cheap.
    return modules_of_extensions(ExtensionGroup.STORAGE)


@lru_cache(maxsize=64)
def _opened(kind: str) -> Provider:
    try:
        provider = find_extension(ExtensionGroup.STORAGE, kind)()
    except NoSuchExtension as missing:
        raise ProviderUnusable(str(missing)) from missing
    if not isinstance(provider, Provider):
        raise ProviderUnusable(f"The storage extension {kind!r} returned no gateway.storage.provider.Provider")
    scheme = provider.scheme
    if (provider.tag, provider.credential_tag, scheme.names, provider.aliases) != (kind, kind, (kind,), ()):
        raise ProviderUnusable(
            f"The storage extension {kind!r} must have this name as the type of its profiles and credentials and as "
            "its only scheme, without aliases: other names could be those of other providers"
        )
    if scheme.path_alone:
        raise ProviderUnusable(f"The scheme of the storage extension {kind!r} must require an authority")
    return provider
