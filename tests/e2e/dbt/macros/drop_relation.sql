-- SPDX-License-Identifier: Apache-2.0
-- DuckDB does not support DROP TABLE … CASCADE for Iceberg tables, which the macro of the adapter sends.
{% macro duckdb__drop_relation(relation) -%}
  {% call statement('drop_relation', auto_begin=False) -%}
    drop {{ relation.type }} if exists {{ relation }}
  {%- endcall %}
{%- endmacro %}
