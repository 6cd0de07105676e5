# SPDX-License-Identifier: Apache-2.0
"""Give the fields of storage profiles with defaults, in the stored form, for the comparison in `lakegate apply`.

Read storage credentials too. The applied file contains no secret of them, only a reference: an environment variable, or
a file in `--secrets-dir`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from gateway.apply import ApplyError
from gateway.apply.document import SecretRef
from gateway.apply.state import Change, Kind
from gateway.iceberg.errors import CatalogError
from gateway.scope.errors import StorageTypeNotSupported
from gateway.storage.registry import decode_profile


class SecretMissing(ApplyError):
    """A secret that the file refers to cannot be read. The message names the variable or file, never a value."""


def profile_fields(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a profile as `storage.<name>`, with defaults and without aliases.

    A profile of a storage type that is not installed here is returned unchanged. Raises CatalogError for an invalid
    profile.
    """
    try:
        decoded = msgspec.to_builtins(decode_profile(msgspec.json.encode(profile)))
    except StorageTypeNotSupported:
        decoded = profile
    return _named(decoded)


def present_profile_fields(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a stored profile. A profile that this version cannot decode is returned unchanged."""
    try:
        return profile_fields(profile)
    except CatalogError:
        return _named(profile)


Variables = Callable[[str], str | None]
"""Returns the environment variable of a name; None if it is not set."""


#: Only these variables are read: the author of the file also chooses the endpoint that receives the value.
VARIABLE_PREFIX = "LAKEGATE_APPLY_"


def is_secret(field: str) -> bool:
    """Return True if the name of a credential's field means that the field contains a secret."""
    return any(word in field for word in ("secret", "token", "key", "password")) and not field.endswith(
        ("-id", "-type")
    )


def needed_credential(change: Change) -> Mapping[str, str | SecretRef] | None:
    """Return the credential that this change sends; None if it sends none."""
    if change.address.kind is not Kind.WAREHOUSE or change.desired is None:
        return None
    sends = any(each.name == "credential" or each.name.startswith("storage.") for each in change.fields)
    credential: Mapping[str, str | SecretRef] | None = change.desired.spec.credential
    return credential if sends else None


def reference_fault(field: str, ref: SecretRef) -> str | None:
    """Return the reason why a credential's field cannot have this reference; None if it can."""
    if (ref.env is None) == (ref.file is None):
        return "give exactly one of env and file."
    if not is_secret(field):
        return f"{field} is no secret, so it cannot be a reference. Write its value."
    if ref.env is not None and not ref.env.startswith(VARIABLE_PREFIX):
        return (
            f"the environment variable {ref.env} cannot be read. Only variables whose names begin with "
            f"{VARIABLE_PREFIX} are: rename it to {VARIABLE_PREFIX}{ref.env}."
        )
    if ref.file is not None and (PurePosixPath(ref.file).is_absolute() or ".." in PurePosixPath(ref.file).parts):
        return (
            f"the file {ref.file} cannot be read. Write a path relative to the directory of --secrets-dir, "
            "without `..`."
        )
    return None


def read_credential(
    credential: Mapping[str, str | SecretRef], *, secrets: Path | None, variables: Variables
) -> dict[str, str]:
    """Return the credential with its secrets. Files with secrets must be in the directory `secrets`. Raises
    SecretMissing.
    """
    return {
        name: value if isinstance(value, str) else _secret(name, value, secrets, variables)
        for name, value in credential.items()
    }


def _secret(field: str, ref: SecretRef, secrets: Path | None, variables: Variables) -> str:
    if fault := reference_fault(field, ref):
        raise SecretMissing(fault)
    if ref.env is not None:
        if not (found := variables(ref.env)):
            raise SecretMissing(f"the environment variable {ref.env} is not set. Set it to the secret.")
        return found
    if secrets is None:
        raise SecretMissing(f"the secret in the file {ref.file} needs --secrets-dir, the directory that contains it.")
    path = secrets / (ref.file or "")
    try:
        # A link inside of the directory may lead to another place in it, as in a secret that Kubernetes mounts.
        if not path.resolve(strict=True).is_relative_to(secrets.resolve(strict=True)):
            raise SecretMissing(f"the file {path} is a link to a place outside of {secrets}. Put the file there.")
        return path.read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SecretMissing(f"the secret in the file {path} cannot be read: {reason}.") from None


def _named(profile: Mapping[str, Any]) -> dict[str, Any]:
    return {f"storage.{name}": value for name, value in profile.items()}
