# SPDX-License-Identifier: Apache-2.0
"""Entry point of `python -m gateway.pipeline`."""

from gateway.pipeline.main import main

raise SystemExit(main())
