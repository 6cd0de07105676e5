-- SPDX-License-Identifier: Apache-2.0
-- The text that search compares. Columns and indexes store the results of these functions, so the functions never
-- change: another result needs a function of another name, and a migration that computes columns and indexes by it.

-- Text in which search compares trigrams: a-z, 0-9 and blanks only. In locale C, pg_trgm ignores all other letters.
-- The text is decomposed (NFKD), without combining accents. Every other character that is not ASCII becomes four
-- characters, which are unique: 1000003 and 36^4 have no common divisor. They are scattered, so that neighbours in an
-- alphabet are not similar. The result depends on no locale or collation. 1024 characters fit into an index entry.
create or replace function searchable(folded text) returns text language sql immutable strict parallel safe as $$
    select left(coalesce(string_agg(
        case
            when code between 97 and 122 or code between 48 and 57 then chr(code)
            when code between 65 and 90 then chr(code + 32)
            when code < 128 then ' '
            else substr(digits, (v / 46656)::int + 1, 1) || substr(digits, (v / 1296 % 36)::int + 1, 1)
                || substr(digits, (v / 36 % 36)::int + 1, 1) || substr(digits, (v % 36)::int + 1, 1)
        end, '' order by n), ''), 1024)
    from (
        select n, ascii(c) as code, ascii(c)::bigint * 1000003 % 1679616 as v,
            'abcdefghijklmnopqrstuvwxyz0123456789' as digits
        from regexp_split_to_table(normalize(folded, NFKD), '') with ordinality as split(c, n)
        where c <> ''
    ) characters
    where code not between 768 and 879
$$;

-- The bits of all trigrams of `pg_trgm` of a text of words of a-z and 0-9 with blanks between them. A word has two
-- blanks before it and one behind it, so no trigram ends with two blanks or has its only blank in the middle. An index
-- is built without the schemas of extensions, so the function cannot call `show_trgm`. In SQL it would take nine times
-- as long. The cost is high so that the planner prefers an index that contains the result.
create or replace function search_signature(key text) returns bit(256)
language plpgsql immutable strict parallel safe cost 10000 as $$
    declare
        padded bytea := convert_to('  ' || replace(key, ' ', '   ') || ' ', 'UTF8');
        signature bit(256) := 0::bit(256);
        a int := 32;
        b int := 32;
        c int;
    begin
        for n in 2 .. length(padded) - 1 loop
            c := get_byte(padded, n);
            if b <> 32 or (a = 32 and c <> 32) then
                signature := set_bit(signature, (a * 7919 + b * 104729 + c * 1299709) % 251, 1);
            end if;
            a := b;
            b := c;
        end loop;
        return signature;
    end $$;
