# SPDX-License-Identifier: Apache-2.0
"""Read the environment of the process. No other module reads it.

Beside the settings, these are variables of other programs: Kubernetes, OpenSSL, Java, Hadoop and the Prometheus client.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gateway.settings.env import PREFIX

if TYPE_CHECKING:
    from gateway.settings import Settings


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
    """Return the directory for tools: the setting, ``$XDG_CACHE_HOME/lakegate`` or ``~/.cache/lakegate``."""
    if settings.embedded.cache_dir is not None:
        return settings.embedded.cache_dir
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "lakegate")


def state_directory() -> str:
    """Return the directory for the logins of a user: ``$XDG_STATE_HOME/lakegate`` or ``~/.local/state/lakegate``."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "lakegate")


def variable(name: str) -> str | None:
    """Return an environment variable that a file of `lakegate apply` names for a secret; None if it is empty."""
    return os.environ.get(name) or None


def search_path() -> str:
    """Return the ``PATH`` in which programs are searched."""
    return os.environ.get("PATH", os.defpath)


def java_home() -> str | None:
    """Return the JDK directory from ``JAVA_HOME``; None if it is not set."""
    return os.environ.get("JAVA_HOME") or None


def tool_environment(**changes: str) -> dict[str, str]:
    """Return the environment for package managers and compilers, with `changes`.

    It is the user's own without the settings, so that the user's mirrors and proxies apply.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)} | changes


def hadoop_environment() -> dict[str, str]:
    """Return the variables that name the Hadoop and Kerberos configuration of this process."""
    return {name: value for name, value in os.environ.items() if name.startswith(("HADOOP_", "KRB5"))}
