# SPDX-License-Identifier: Apache-2.0
"""Check the types of the console's modules with TypeScript: `make check-console`.

The modules are plain JavaScript with types in comments. `import("lakegate-api")` in them is the OpenAPI document as
types. npm installs the tools from `package-lock.json`, which has the integrity of each package, into `build/console`.
`proof.js` has faults that TypeScript must find. Without Node the check is skipped: neither users nor the wheel need it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import gateway.features.all_routes  # noqa: F401 - the import serves every operation
from gateway.api.openapi import openapi_document
from gateway.api.openapi_shared import with_shared_parts
from gateway.features.server.console_files import FILES

_HERE: Final = Path(__file__).parent
BUILD: Final = _HERE.parents[1] / "build" / "console"

_TOOLS: Final = ("package.json", "package-lock.json", ".npmrc")
_OLDEST: Final = (20, 19)


def missing() -> str:
    """Return why the check cannot run here; empty if it can."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return "Node and npm are not installed"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(int(each) for each in version.removeprefix("v").split(".")[:2]) < _OLDEST:
        return f"Node is {version}, and the tools need {'.'.join(map(str, _OLDEST))} or newer"
    return ""


def install(folder: Path) -> None:
    """Install the pinned tools into the folder, unless they are installed. Raises CalledProcessError."""
    stamp = folder / "node_modules" / ".installed"
    digest = hashlib.sha256(b"".join((_HERE / name).read_bytes() for name in _TOOLS)).hexdigest()
    if stamp.is_file() and stamp.read_text() == digest:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in _TOOLS:
        shutil.copy(_HERE / name, folder / name)
    subprocess.run(["npm", "ci", "--loglevel=error"], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    stamp.write_text(digest)


def declare_api(folder: Path) -> None:
    """Write `api.d.ts`, the types of the OpenAPI document. Raises CalledProcessError."""
    (folder / "openapi.json").write_text(json.dumps(with_shared_parts(openapi_document())))
    command = ["node_modules/.bin/openapi-typescript", "openapi.json", "--output", "api.d.ts"]
    subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def configure(folder: Path, modules: Path) -> None:
    """Write the configuration of TypeScript for the modules below a folder."""
    config: dict[str, Any] = json.loads((_HERE / "tsconfig.json").read_text())
    config["include"] = [f"{modules}/**/*.js", str(_HERE / "proof.js")]
    config["exclude"] = [f"{modules}/vendor"]
    (folder / "tsconfig.json").write_text(json.dumps(config))


def check(modules: Path = FILES, folder: Path = BUILD) -> subprocess.CompletedProcess[str]:
    """Check the modules with installed tools. The output names each fault with its file and line."""
    configure(folder, modules)
    command = ["node_modules/.bin/tsc", "--project", "tsconfig.json"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def main() -> int:
    """Run the check. Return 0 if the types agree, or if the check cannot run here."""
    if reason := missing():
        print(f"SKIPPED: the types of the console were not checked: {reason}", file=sys.stderr)
        return 0
    try:
        install(BUILD)
        declare_api(BUILD)
    except subprocess.CalledProcessError as error:
        print(f"The tools for the types of the console failed: {error}", file=sys.stderr)
        return 1
    done = check()
    print(done.stdout, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
