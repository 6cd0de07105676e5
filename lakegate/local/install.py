# SPDX-License-Identifier: Apache-2.0
"""Install the missing tools of the embedded stack, for ``lakegate setup`` and ``lakegate up``.

Tools in Go are built once, from pinned module versions. Packages and archives are fetched meanwhile. A step that fails
raises an error with the fault and the remedy. The other steps finish, so that the next run continues. An incomplete
result is removed. A second run checks a few files and changes nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console

from gateway.settings import Settings, java_home, search_path, tool_environment
from lakegate.local import jdk, spark_jars
from lakegate.local.errors import StackError, ToolMissing
from lakegate.local.programs import Notify, Step, Steps, check_versions, output_of, run
from lakegate.local.toolchain import GO_TOOLS, OLDEST_GO, Cache, GoTool, cache, needs_servers, tool_lock
from lakegate.spark.classes import class_archive

_GO_VERSION = re.compile(r"go(\d+)\.(\d+)")
_PACKAGE = re.compile(r"[\w.\-~/]+")
#: The `go.sum` of the module that is built lacks some hashes, and with this flag Go may add them.
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
    """Yield (path of the program ``go``, environment for builds). If Go was installed for this purpose, it is removed
    after the block.

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
        shutil.rmtree(kept.environment("go"), ignore_errors=True)  # no other program uses this directory


def installed_go() -> str | None:
    """Return the path of the Go that is installed on the machine; None if it is older than ``OLDEST_GO`` or there is
    none.
    """
    on_path = shutil.which("go", path=search_path())
    return on_path if on_path is not None and (go_version(on_path) or (0, 0)) >= OLDEST_GO else None


def _go(steps: Steps, locked: Environment) -> tuple[str, bool]:
    """Return (path of a Go that is not older than ``OLDEST_GO``, True if this call installed it)."""
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
    """Write a Go module that requires the module of the tool, and everything that the module in `source` requires.

    By this file Go selects the same versions, checks the same hashes, and replaces modules that the stack does not use.
    `go install` can do none of that.
    """
    lines = [line for line in (source / "go.mod").read_text().splitlines() if not line.startswith("module ")]
    lines[:0] = ["module lakegate.build", "", f"require {tool.module_path} {tool.version}"]
    lines += [f"replace {module} => {folder}" for module, folder in tool.substitutes().items()]
    (directory / "go.mod").write_text("\n".join(lines) + "\n")
    shutil.copyfile(source / "go.sum", directory / "go.sum")


def _packages(go: str, directory: str, tool: GoTool, environment: dict[str, str]) -> int:
    """Return the maximum number of packages that a build compiles, or 0 if Go does not list them."""
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


def locked_environment(kept: Cache, name: str, notify: Notify) -> Path:
    """Return the virtual environment for ``requirements/<name>.lock``. Create it if it is missing.

    Raises:
        StackError: Python's venv module or pip failed.
    """
    target = kept.environment(name)
    if not (target / "complete").exists():
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        hint = "Check that the package index is reachable. The settings of pip (pip.conf, PIP_*) apply."
        run([sys.executable, "-m", "venv", str(target)], tool_environment(), notify, "Install Python's venv module.")
        pip = [str(target / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        arguments = ["--require-hashes", "--no-deps", "--only-binary=:all:", "-r", str(tool_lock(name))]
        run([*pip, *arguments], tool_environment(), notify, hint)
        (target / "complete").touch()
    return target


def build_go_tools(tools: Sequence[GoTool], kept: Cache, console: Console) -> None:
    """Build the tools that are missing in the cache.

    Raises:
        StackError: a build failed.
    """
    missing = [tool for tool in tools if not kept.go_tool(tool).is_file()]
    with Steps(console, _builds(missing)) as steps:
        build_missing(tools, kept, steps, lambda name, step: locked_environment(kept, name, step.notify))


def install(settings: Settings, console: Console, *, with_spark: bool) -> None:
    """Install every missing tool, including Spark's archives if ``with_spark`` is set.

    Raises:
        StackError: a tool could not be installed, or a configured program has another version than this stack needs.
            The message names the remedy.
    """
    check_versions(settings)
    kept = cache(settings)
    named = {"opa": settings.embedded.opa_bin, "openfga": settings.embedded.openfga_bin}
    wanted = [tool for tool in GO_TOOLS if named[tool.name] is None and not kept.go_tool(tool).is_file()]
    fetched = _missing(settings, kept, with_spark=with_spark)
    with Steps(console, _builds(wanted) + len(fetched)) as steps:

        def locked(name: str, step: Step) -> Path:
            return locked_environment(kept, name, step.notify)

        def build() -> None:
            build_missing(wanted, kept, steps, locked)

        def fetch() -> None:
            for title, work in fetched.items():
                with steps.step(title) as step:
                    work(step)

        _together([build, fetch] if wanted else [fetch])


def _builds(tools: Sequence[GoTool]) -> int:
    """Return the number of steps to build these tools, including one for Go if the machine has none."""
    return len(tools) + (1 if tools and installed_go() is None else 0)


def _missing(settings: Settings, kept: Cache, *, with_spark: bool) -> dict[str, Callable[[Step], object]]:
    """Return {title: function} of the steps that fetch missing packages and archives."""
    missing: dict[str, Callable[[Step], object]] = {}
    if needs_servers(settings) and not (kept.environment("servers") / "complete").exists():
        title = "Installing PostgreSQL and the object store (100 MB)"
        missing[title] = lambda step: locked_environment(kept, "servers", step.notify)
    if settings.embedded.nanoidp_bin is None and not kept.nanoidp().is_file():
        title = "Installing the development identity provider"
        missing[title] = lambda step: locked_environment(kept, "idp", step.notify)
    for archive in spark_jars.ARCHIVES if with_spark else ():
        if not (kept.jars() / archive.file_name).is_file():
            missing[f"Fetching {archive.file_name} ({archive.megabytes} MB)"] = partial(_fetch, archive, kept)
    if with_spark:
        missing |= _unrecorded([kept.jars() / archive.file_name for archive in spark_jars.ARCHIVES])
    return missing


def _unrecorded(jars: Sequence[Path]) -> dict[str, Callable[[Step], object]]:
    """Return {title: function} of the step that records the classes of Spark. It is left out without a Java."""
    try:
        java = jdk.find(java_home(), search_path())
    except ToolMissing:
        return {}
    recorded = class_archive(jars, java)
    if recorded is None or recorded.exists():
        return {}
    title = "Recording the classes of Spark, for faster starts"
    return {title: lambda step: spark_jars.record_classes(jars, recorded, java=java, notify=step.notify)}


def _fetch(archive: spark_jars.Archive, kept: Cache, _: Step) -> None:
    spark_jars.fetch(archive, kept.jars(), java_home=java_home(), environment=tool_environment())


def _together(jobs: Sequence[Callable[[], None]]) -> None:
    """Run all jobs at the same time. If one fails, let the others finish, then raise its error."""
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        running = [pool.submit(job) for job in jobs]
        wait(running)
    failures = [failure for job in running if (failure := job.exception()) is not None]
    for failure in failures:
        if not isinstance(failure, StackError):
            raise failure
    if failures:
        raise StackError("\n".join(map(str, failures)))
