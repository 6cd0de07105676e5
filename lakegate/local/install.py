# SPDX-License-Identifier: Apache-2.0
"""Install the missing tools of the embedded stack: the work of ``lakegate setup``, which ``lakegate up`` does as well.

A second run checks a few files and changes nothing. Packages and archives are fetched while the tools in Go are built.
A step that fails raises an error with the fault and the remedy. The other steps finish, so that the next run continues.
An incomplete result is removed.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

from rich.console import Console

from gateway.settings import Settings, java_home, tool_environment
from lakegate.local import spark_jars
from lakegate.local.errors import StackError
from lakegate.local.go_build import build_missing, installed_go
from lakegate.local.programs import Notify, check_versions, run
from lakegate.local.steps import Step, Steps
from lakegate.local.toolchain import GO_TOOLS, Cache, GoTool, cache, needs_servers, tool_lock


def locked_environment(kept: Cache, name: str, notify: Notify) -> Path:
    """Return the virtual environment for ``requirements/<name>.lock``; create it if it is missing.

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
    """Install every missing tool; ``with_spark`` includes Spark's archives.

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
    """Return the number of steps that build these tools: one more for Go, if the machine has none."""
    return len(tools) + (1 if tools and installed_go() is None else 0)


def _missing(settings: Settings, kept: Cache, *, with_spark: bool) -> dict[str, Callable[[Step], object]]:
    """Return the steps that fetch missing packages and archives: the work by the title."""
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
    return missing


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
