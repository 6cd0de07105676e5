# SPDX-License-Identifier: Apache-2.0
"""Options of `lakegate up` that are refused before anything starts."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gateway.cli import main


@pytest.mark.parametrize(
    "uri", ["console", "ftp://localhost/callback", "http:///callback", "http://localhost/callback#token"]
)
def test_redirect_address_that_no_browser_returns_to_is_refused(uri: str) -> None:
    ended = CliRunner().invoke(main, ["up", "--redirect-uri", uri])
    assert ended.exit_code == 2
    assert f"{uri} is no address such as http://" in ended.output
