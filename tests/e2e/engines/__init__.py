# SPDX-License-Identifier: Apache-2.0
"""Real engines with environments of their own. `NAME.lock` and `NAME.jars` pin what `test_NAME.py` needs."""
