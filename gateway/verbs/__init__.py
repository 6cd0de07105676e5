# SPDX-License-Identifier: Apache-2.0
"""The verbs of the ``lakegate`` command, by what they are about. Each imports what it needs when it runs: a verb that
asks little has little to load.
"""
