# SPDX-License-Identifier: Apache-2.0
"""Real engines with environments of their own. `tests/locks/NAME.*` pins what `test_NAME.py` needs."""
