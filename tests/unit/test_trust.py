# SPDX-License-Identifier: Apache-2.0
"""What is copied of certificates, and for how long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from tests.integration.certificates import authority

_TELL = """
import sys
from gateway.trust import trusted
bundle = trusted(None, sys.argv[1]).bundle
print(bundle)
print(open(bundle).read())
"""


def test_of_a_directory_only_certificates_are_copied_and_the_copy_goes_with_the_process(tmp_path: Path) -> None:
    made = authority(tmp_path / "ca")
    key = made.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both = tmp_path / "certificates"
    both.mkdir()
    (both / "tls.pem").write_bytes(key + made.file.read_bytes())
    told = subprocess.run(
        [sys.executable, "-c", _TELL, str(both)],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    path, _, text = told.partition("\n")
    assert made.file.read_text().strip() in text
    assert "PRIVATE KEY" not in text
    assert path.startswith(str(tmp_path))
    assert not Path(path).exists()
