# SPDX-License-Identifier: Apache-2.0
"""Break-glass: rights for an emergency, which a user takes for minutes and another principal reviews."""
