# SPDX-License-Identifier: Apache-2.0
"""The three layers of the medallion: `bronze` (as delivered), `silver` (typed and joined), `gold` (answers).

Every module holds pure functions from DataFrames to DataFrames; what touches a table is in
`gateway.pipeline.tables`, and the order of things is in `gateway.pipeline.run`.
"""
