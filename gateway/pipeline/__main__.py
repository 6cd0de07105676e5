# SPDX-License-Identifier: Apache-2.0
"""`python -m gateway.pipeline`."""

from gateway.pipeline.main import main

raise SystemExit(main())
