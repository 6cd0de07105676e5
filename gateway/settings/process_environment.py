# SPDX-License-Identifier: Apache-2.0
"""Read the environment of the process. No other module reads it.

Beside the settings, it reads variables of other programs: Kubernetes, OpenSSL, Java, Hadoop and the Prometheus client.

Settings can also be in a directory of files, one file for each setting, as Kubernetes and Compose mount secrets. The
variable `LAKEGATE__SETTINGS_DIRECTORY` names it. For example, its file `PG_ENCRYPTION_KEY` is the setting
`LAKEGATE__PG_ENCRYPTION_KEY`. Unlike a variable, its value is not visible to a process that lists the environment of
another one. White space around a value is removed, because many tools end a file with a newline, which no password
contains.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.settings.env import PREFIX, SettingsError

if TYPE_CHECKING:
    from gateway.settings import Settings


DIRECTORY: Final = f"{PREFIX}SETTINGS_DIRECTORY"


def with_files(source: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables in `source`. If it has a settings directory, add the variables in the files of that
    directory.

    Raises:
        SettingsError: lists each file that cannot be read and each setting that has a variable and a file. A message
            contains no value.
    """
    if not source.get(DIRECTORY):
        return source
    read: dict[str, str] = {}
    problems: list[str] = []
    for file in _files(Path(source[DIRECTORY])):
        variable = PREFIX + file.name
        if variable in source:
            problems.append(f"{variable} is a variable and the file {file}; keep one of them")
            continue
        try:
            read[variable] = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            # The text of a UnicodeDecodeError contains bytes of the file.
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            problems.append(f"{variable}: the file {file} cannot be read: {reason}")
    if problems:
        raise SettingsError("\n".join(problems))
    return {**source, **read}


def _files(directory: Path) -> list[Path]:
    """Return the files of the directory, sorted by name. Files whose names begin with a dot are skipped: Kubernetes
    keeps copies there.

    Raises:
        SettingsError: the directory cannot be listed.
    """
    try:
        found = sorted(directory.iterdir())
    except OSError as error:
        raise SettingsError(f"{DIRECTORY}: {directory} cannot be listed: {error.strerror}") from None
    return [each for each in found if not each.name.startswith(".") and not each.is_dir()]


def process_variables() -> Mapping[str, str]:
    """Return all variables of the process."""
    return os.environ


def kubernetes_service() -> tuple[str | None, str]:
    """Return (host, port) of the API server of this process's cluster. The host is None outside of a cluster."""
    return os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")


def export_metrics_directory(directory: str) -> None:
    """Set the directory of the workers' metrics. The Prometheus client reads it only from the environment."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory


def metrics_directory() -> str | None:
    """Return the directory that ``export_metrics_directory`` set; None if it was not called."""
    return os.environ.get("PROMETHEUS_MULTIPROC_DIR")


def certificate_sources() -> tuple[str | None, str | None]:
    """Return ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, which all programs that use OpenSSL read; None if not set."""
    return os.environ.get("SSL_CERT_FILE") or None, os.environ.get("SSL_CERT_DIR") or None


def cache_directory(settings: Settings) -> str:
    """Return the directory for tools: the one in the settings, ``$XDG_CACHE_HOME/lakegate`` or
    ``~/.cache/lakegate``.
    """
    if settings.embedded.cache_dir is not None:
        return settings.embedded.cache_dir
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "lakegate")


def state_directory() -> str:
    """Return the directory for the logins of a user: ``$XDG_STATE_HOME/lakegate`` or ``~/.local/state/lakegate``."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "lakegate")


def variable(name: str) -> str | None:
    """Return the environment variable `name`, to which a file of `lakegate apply` refers for a secret; None if it is
    empty.
    """
    return os.environ.get(name) or None


def search_path() -> str:
    """Return the ``PATH`` in which programs are searched."""
    return os.environ.get("PATH", os.defpath)


def java_home() -> str | None:
    """Return the JDK directory from ``JAVA_HOME``; None if it is not set."""
    return os.environ.get("JAVA_HOME") or None


def tool_environment(**changes: str) -> dict[str, str]:
    """Return the environment for package managers, compilers and commands of engines, with `changes` applied.

    It is the environment of this process without the settings, so that the user's mirrors and proxies apply.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)} | changes


def hadoop_environment() -> dict[str, str]:
    """Return the variables with the Hadoop and Kerberos configuration of this process."""
    return {name: value for name, value in os.environ.items() if name.startswith(("HADOOP_", "KRB5"))}
