# SPDX-License-Identifier: Apache-2.0
"""Admission control: limit the share of one worker process that each principal may use at the same time."""
