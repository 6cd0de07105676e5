# SPDX-License-Identifier: Apache-2.0
"""The three layers of the pipeline: `bronze` (as delivered), `silver` (typed and joined), `gold` (aggregated).

The functions of `silver` and `gold` are pure, from DataFrames to DataFrames; `bronze` also appends to its tables.
`lakegate.spark.tables` writes the other tables, and `lakegate.spark.run` defines the order of the steps.
"""
