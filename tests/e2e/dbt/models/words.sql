-- SPDX-License-Identifier: Apache-2.0
{{ config(materialized='incremental', incremental_strategy='append', alias=var('table')) }}
select id, word
from {{ ref('people') }}
where id <= {{ var('until') }}
{% if is_incremental() %}
  and id > (select coalesce(max(id), 0) from {{ this }})
{% endif %}
