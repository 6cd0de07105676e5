# SPDX-License-Identifier: Apache-2.0
"""The bridge to Trino as an OPA bundle: one file, for an OPA that stands beside Trino and was told nothing else.

The same policies make the same bytes, so that whoever serves bundles can compare them and sign them.
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
    """(the bundle, its revision) of the bridge in this folder of policies, without its tests.

    The revision is a digest of the rules: OPA tells it in every line of its decision log.

    Raises:
        StackError: there is no bridge in the folder.
    """
    files = {
        str(file.relative_to(policies)): file.read_bytes()
        for file in sorted((policies / BRIDGE).glob("**/*.rego"))
        if not file.stem.endswith("_test")
    }
    if not files:
        raise StackError(f"no policies for Trino found in {policies / BRIDGE}")
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    revision = digest.hexdigest()[:32]
    manifest = json.dumps({"revision": revision, "roots": [BRIDGE], "rego_version": 1}).encode()
    return _archive({".manifest": manifest, **files}), revision


def _archive(files: dict[str, bytes]) -> bytes:
    """A compressed archive that tells of no time and no owner."""
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
