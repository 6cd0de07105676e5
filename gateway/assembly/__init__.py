# SPDX-License-Identifier: Apache-2.0
"""What `gateway.app` joins, made from the settings: adapters to the systems outside, use cases, background work.

Only here and there are concrete classes named; every other room gets plain values and what it needs.
"""
