# SPDX-License-Identifier: Apache-2.0
"""Read the settings of the policy bundles that the gateway serves."""

from __future__ import annotations

from pathlib import Path

from gateway.opa.bundle import InvalidSigningKey, SigningAlgorithm, SigningKey
from gateway.opa.policy_files import PolicySource
from gateway.settings import Settings, SettingsError
from gateway.settings.env import PREFIX


def policy_source(settings: Settings) -> tuple[PolicySource | None, SigningKey | None]:
    """Return (the operator's directory of policies, None if the package's are used; the key for signatures, None
    without signatures).

    Raises:
        SettingsError: the directory does not exist, the program OPA is missing, which checks it, or the key cannot be
            read or is not one of the algorithm.
    """
    source = _source(settings) if settings.policy_directory else None
    if not settings.policy_signing_key_file:
        return source, None
    name, file = f"{PREFIX}POLICY_SIGNING_KEY_FILE", Path(settings.policy_signing_key_file)
    try:
        return source, SigningKey(SigningAlgorithm(settings.policy_signing_algorithm), file.read_text())
    except InvalidSigningKey as invalid:
        raise SettingsError(f"{name}, {file}: {invalid}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name}, {file}: the file cannot be read: {error}") from None


def _source(settings: Settings) -> PolicySource:
    # Imported here: the toolchain of the embedded stack imports large packages, which workers without a directory of
    # policies must not load.
    from lakegate.local.errors import ToolMissing
    from lakegate.local.toolchain import OPA, locate_opa

    directory = Path(settings.policy_directory or "")
    if not directory.is_dir():
        raise SettingsError(f"{PREFIX}POLICY_DIRECTORY must be an existing directory, and {directory} is not one")
    try:
        return PolicySource(directory, locate_opa(settings), settings.policy_complete)
    except ToolMissing as missing:
        raise SettingsError(
            f"{PREFIX}POLICY_DIRECTORY needs the program OPA {OPA.version.removeprefix('v')}, which checks what its "
            f"rules use: {missing}. {PREFIX}EMBEDDED__OPA_BIN names an installation."
        ) from None
