# SPDX-License-Identifier: Apache-2.0
"""Copies of certificates and their lifetime."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from tests.support.servers.certificates import authority

_PRINT_PATH = """
import os
import sys
from gateway.tls import trusted
bundle = trusted(None, sys.argv[1]).bundle
print(bundle)
print(open(bundle).read(), flush=True)
os.kill(os.getpid(), int(sys.argv[2]))
"""


@pytest.mark.parametrize("ending", [0, signal.SIGKILL])
def test_only_certificates_are_copied_and_the_copy_is_removed_on_exit(tmp_path: Path, ending: int) -> None:
    made = authority(tmp_path / "ca")
    key = made.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both = tmp_path / "certificates"
    both.mkdir()
    (both / "tls.pem").write_bytes(key + made.file.read_bytes())
    kept = tmp_path / "kept"
    kept.mkdir()
    completed = subprocess.run(
        [sys.executable, "-c", _PRINT_PATH, str(both), str(int(ending))],
        env=os.environ | {"TMPDIR": str(kept)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert completed.returncode == -ending, completed.stderr
    _, _, text = completed.stdout.partition("\n")
    assert made.file.read_text().strip() in text
    assert "PRIVATE KEY" not in text
    assert list(kept.iterdir()) == []
