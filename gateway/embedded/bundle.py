# SPDX-License-Identifier: Apache-2.0
"""The bridge to Trino as an OPA bundle: one file with all policies for Trino's own OPA.

The same policies give the same bytes, so that bundles can be compared and signed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

from gateway.embedded.errors import StackError

#: The folder of the bridge below the policies, and the root that the bundle owns in OPA.
BRIDGE = "trino"


def bridge_bundle(policies: Path) -> tuple[bytes, str]:
    """Return (bundle, revision) of the bridge in this folder of policies, without its tests.

    The revision is a digest of the rules. OPA writes it to each line of its decision log.

    Raises:
        StackError: the folder contains no bridge.
    """
    files = {
        str(file.relative_to(policies)): file.read_bytes()
        for file in sorted((policies / BRIDGE).glob("**/*.rego"))
        if not file.stem.endswith("_test")
    }
    if not files:
        raise StackError(f"{policies / BRIDGE} contains no policies for Trino; install Lakegate again")
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    revision = digest.hexdigest()[:32]
    manifest = json.dumps({"revision": revision, "roots": [BRIDGE], "rego_version": 1}).encode()
    return _archive({".manifest": manifest, **files}), revision


def _archive(files: dict[str, bytes]) -> bytes:
    """Return a compressed archive without modification times and owners."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
