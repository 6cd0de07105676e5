schema: '1.2'
contents:
  - core.fga
  - user.fga
  - role.fga
  - server.fga
  - project.fga
  - warehouse.fga
  - namespace.fga
  - table.fga
  - column.fga
  - view.fga
  - generic_table.fga
  - tag.fga
  - data_policy.fga
