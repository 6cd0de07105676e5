# SPDX-License-Identifier: Apache-2.0
"""Build the kit of use cases with the components that a test needs."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from gateway.features.kit import Kit
from gateway.iceberg.limits import Limits

_USUAL = {"limits": Limits(), "page_size": 100, "default_page_size": 100, "request_seconds": 30.0}


def kit_of(**parts: Any) -> Kit:
    """Return a kit of these components and settings. The others are None, so that their use fails a test."""
    given = {"policy_source": (None, None), **_USUAL, **parts}
    return Kit(**{each.name: given.pop(each.name, None) for each in fields(Kit)}, **given)


def conformance(site: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gateway.cli", "conformance", *arguments],
        env={**os.environ, "PYTHONPATH": f"{site}:{os.getcwd()}", **environment},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
