# SPDX-License-Identifier: Apache-2.0
"""Copy the console's libraries from the npm registry into the package: `python -m tests.console.vendor`.

`vendor/libraries.json` pins each package by version and integrity. npm downloads the archive, and this command compares
its digest before it copies the named files, byte for byte. Users need neither npm nor Node.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from gateway.features.server.console_files import LIBRARIES, VENDOR, Library

SUMS = VENDOR / "SHA256SUMS"


def digests() -> dict[str, str]:
    """Return the SHA-256 digest of each vendored file by its path below `vendor`."""
    found = sorted(each for each in VENDOR.rglob("*") if each.is_file() and each.parent != VENDOR)
    return {each.relative_to(VENDOR).as_posix(): hashlib.sha256(each.read_bytes()).hexdigest() for each in found}


def _copy(library: Library, folder: Path) -> None:
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), f"{library.name}@{library.version}"]
    name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    archive = folder / name
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != library.integrity:
        raise SystemExit(f"{library.name} {library.version} has the integrity sha512-{digest}, not the pinned one")
    with tarfile.open(archive) as packed:
        for file in library.files:
            content = packed.extractfile(f"package/{file}")
            if content is None:
                raise SystemExit(f"{library.name} {library.version} has no file {file}")
            target = VENDOR / library.folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())


def main() -> None:
    """Download and copy all libraries, and write the digests of the files."""
    with tempfile.TemporaryDirectory() as folder:
        for library in LIBRARIES:
            _copy(library, Path(folder))
            print(f"{library.name} {library.version}", file=sys.stderr)
    SUMS.write_text("".join(f"{digest}  {path}\n" for path, digest in digests().items()))


if __name__ == "__main__":
    main()
