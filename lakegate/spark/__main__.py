# SPDX-License-Identifier: Apache-2.0
"""Entry point of `python -m lakegate.spark`."""

from lakegate.spark.main import main

raise SystemExit(main())
