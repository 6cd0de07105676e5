# SPDX-License-Identifier: Apache-2.0
"""Addresses of stores that the operator sets: private endpoints, and emulators on the gateway's own machine.

They are settings of the operator and no part of a storage profile, so the networks that profiles may name do not limit
them. Plain HTTP is allowed on loopback only: everywhere else it would send tokens and files unencrypted.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

__all__ = ["ACCOUNT", "NO_ADDRESSES", "StoreAddresses", "parse_store_address"]

#: The part of an address that stands for the account of a profile.
ACCOUNT: Final = "{account}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddresses:
    """The addresses of one provider. None: the provider's own.

    `files` is the address of the store, `tokens` that of its authorization server.
    """

    files: str | None = None
    tokens: str | None = None

    @property
    def unencrypted(self) -> bool:
        """Return True if the store is an emulator on this machine, reached by plain HTTP."""
        return self.files is not None and self.files.startswith("http://")


NO_ADDRESSES: Final = StoreAddresses()


def parse_store_address(text: str, *, account: bool = False) -> str:
    """Return the address without a trailing slash. With `account` it must contain `{account}`.

    Raises ValueError that says what is wrong. The form is `scheme://host[:port][/path]`.
    """
    filled = text.replace(ACCOUNT, "account") if account else text
    if account and text.count(ACCOUNT) != 1:
        raise ValueError(f"it must contain {ACCOUNT} once, in place of the name of the storage account")
    try:
        parts = urlsplit(filled)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("it is not a valid URL") from None
    if not host or parts.username is not None or "?" in text or "#" in text or "\\" in text or not text.isascii():
        raise ValueError("it must consist of scheme, host, port and path only")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(host)):
        raise ValueError("it must start with https://, or with http:// and a loopback address such as 127.0.0.1")
    return text.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
