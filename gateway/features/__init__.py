# SPDX-License-Identifier: Apache-2.0
"""The use cases, routes and background tasks of each noun, one folder for each group of nouns."""
