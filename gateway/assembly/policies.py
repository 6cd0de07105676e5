# SPDX-License-Identifier: Apache-2.0
"""Read the settings of the policy bundles that the gateway serves."""

from __future__ import annotations

from pathlib import Path

from gateway.opa.bundle import InvalidSigningKey, SigningAlgorithm, SigningKey
from gateway.settings import Settings, SettingsError
from gateway.settings.env import PREFIX


def policy_source(settings: Settings) -> tuple[Path | None, SigningKey | None]:
    """Return (directory of the policies or None for those of the package, key for signatures or None).

    Raises:
        SettingsError: the directory does not exist, or the key cannot be read or is not one of the algorithm.
    """
    directory = Path(settings.policy_directory) if settings.policy_directory else None
    if directory is not None and not directory.is_dir():
        raise SettingsError(f"{PREFIX}POLICY_DIRECTORY must be an existing directory, and {directory} is not one")
    if not settings.policy_signing_key_file:
        return directory, None
    name, file = f"{PREFIX}POLICY_SIGNING_KEY_FILE", Path(settings.policy_signing_key_file)
    try:
        return directory, SigningKey(SigningAlgorithm(settings.policy_signing_algorithm), file.read_text())
    except InvalidSigningKey as invalid:
        raise SettingsError(f"{name}, {file}: {invalid}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name}, {file}: the file cannot be read: {error}") from None
