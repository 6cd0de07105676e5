-- SPDX-License-Identifier: Apache-2.0
{{ config(materialized='table', alias=var('table') ~ '_lengths') }}
select length(word) as length, count(*) as words
from {{ ref('words') }}
group by 1
