# SPDX-License-Identifier: Apache-2.0
"""Add the console's vendored libraries to a CycloneDX list: `python -m tests.console.sbom dist/sbom.cdx.json`.

The tool that writes the list finds Python packages only.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

from gateway.features.server.console_files import LIBRARIES, Library


def component(library: Library) -> dict[str, Any]:
    """Return the entry of a library (CycloneDX 1.6, `components`), with the digest of its archive."""
    url = f"pkg:npm/{library.name.replace('@', '%40')}@{library.version}"
    digest = base64.b64decode(library.integrity.removeprefix("sha512-")).hex()
    return {
        "bom-ref": url,
        "type": "library",
        "name": library.name,
        "version": library.version,
        "purl": url,
        "licenses": [{"license": {"id": library.license}}],
        "hashes": [{"alg": "SHA-512", "content": digest}],
    }


def with_libraries(document: dict[str, Any]) -> dict[str, Any]:
    """Return the list with the vendored libraries."""
    return {**document, "components": [*document.get("components", ()), *map(component, LIBRARIES)]}


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(json.dumps(with_libraries(json.loads(path.read_text())), indent=2) + "\n")
