# SPDX-License-Identifier: Apache-2.0
"""Compare storage profiles field by field, in the form in which the gateway stores them, and read secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gateway.apply.document import SecretRef
from gateway.iceberg.errors import CatalogError
from gateway.scope.errors import StorageTypeNotSupported
from gateway.storage.registry import decode_profile


class SecretMissing(Exception):
    """A secret that the file refers to cannot be read. The message names the variable or file, never a value."""


def profile_fields(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a profile as `storage.<name>`, with defaults and without aliases.

    A profile of a storage type that is not installed here is returned as it is. Raises CatalogError for an invalid
    profile.
    """
    try:
        decoded = msgspec.to_builtins(decode_profile(msgspec.json.encode(profile)))
    except StorageTypeNotSupported:
        decoded = profile
    return _named(decoded)


def present_profile_fields(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a stored profile. One that this version cannot decode is returned as it is."""
    try:
        return profile_fields(profile)
    except CatalogError:
        return _named(profile)


Variables = Callable[[str], str | None]
"""Returns the environment variable of a name; None if it is not set."""


def read_credential(credential: Mapping[str, str | SecretRef], *, base: Path, variables: Variables) -> dict[str, str]:
    """Return the credential with its secrets. Paths of files are relative to `base`. Raises SecretMissing."""
    return {
        name: value if isinstance(value, str) else _secret(value, base, variables) for name, value in credential.items()
    }


def _secret(ref: SecretRef, base: Path, variables: Variables) -> str:
    if ref.env is not None:
        if not (found := variables(ref.env)):
            raise SecretMissing(f"the environment variable {ref.env} is not set. Set it to the secret.")
        return found
    path = base / (ref.file or "")
    try:
        return path.read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SecretMissing(f"the secret in the file {path} cannot be read: {reason}.") from None


def _named(profile: Mapping[str, Any]) -> dict[str, Any]:
    return {f"storage.{name}": value for name, value in profile.items()}
