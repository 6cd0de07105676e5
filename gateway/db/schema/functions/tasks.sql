-- SPDX-License-Identifier: Apache-2.0
-- Names of task queues.
-- Invariant: no task is in a queue that workers of this version do not read.

-- Gateways of an earlier version call this queue `purge_table`.
create or replace function rename_task_queue() returns trigger language plpgsql as $$
    begin
        new.queue := 'tabular_purge';
        return new;
    end $$;
create or replace trigger tasks_rename_queue before insert on tasks
    for each row when (new.queue = 'purge_table') execute function rename_task_queue();
