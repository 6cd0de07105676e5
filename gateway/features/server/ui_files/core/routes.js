// SPDX-License-Identifier: Apache-2.0
// All pages by the first part of their address. A page's module is loaded when it is opened.

/**
 * @typedef {{open: () => Promise<{default: CustomElementConstructor}>, menu?: string, group?: string}} PageEntry
 * `menu` is the text of the page in the main menu, `group` its group there.
 * @type {Record<string, PageEntry>}
 */
export const ROUTES = {
  home: { open: () => import("../pages/home.js") },
  warehouse: { open: () => import("../pages/warehouse.js") },
  namespace: { open: () => import("../pages/namespace.js") },
  table: { open: () => import("../pages/table.js") },
  view: { open: () => import("../pages/view.js") },
  "generic-table": { open: () => import("../pages/generic-table.js") },
  explain: { open: () => import("../pages/explain.js"), menu: "Why, and who can", group: "Access" },
  requests: { open: () => import("../pages/requests.js"), menu: "Requests", group: "Access" },
  "break-glass": { open: () => import("../pages/break-glass.js"), menu: "Break-glass", group: "Access" },
  project: { open: () => import("../pages/project.js") },
  "new-warehouse": { open: () => import("../pages/new-warehouse.js"), menu: "New warehouse", group: "Data" },
  "data-policies": { open: () => import("../pages/data-policies.js"), menu: "Data policies", group: "Policies" },
  "data-policy": { open: () => import("../pages/data-policy.js") },
  "mapping-tables": { open: () => import("../pages/mapping-tables.js"), menu: "Mapping tables", group: "Policies" },
  tags: { open: () => import("../pages/tags.js"), menu: "Tags", group: "Policies" },
  tag: { open: () => import("../pages/tag.js") },
  users: { open: () => import("../pages/users.js"), menu: "Users", group: "People" },
  user: { open: () => import("../pages/user.js") },
  roles: { open: () => import("../pages/roles.js"), menu: "Roles", group: "People" },
  role: { open: () => import("../pages/role.js") },
  engines: { open: () => import("../pages/engines.js"), menu: "Engines", group: "Operations" },
  tasks: { open: () => import("../pages/tasks.js"), menu: "Tasks", group: "Operations" },
  events: { open: () => import("../pages/events.js"), menu: "Events", group: "Operations" },
  server: { open: () => import("../pages/server.js"), menu: "Server", group: "Operations" },
  "first-run": { open: () => import("../pages/first-run.js") },
  policies: { open: () => import("../pages/policies.js"), menu: "Model and guardrails", group: "Policies" },
  audit: { open: () => import("../pages/audit.js"), menu: "Audit", group: "Audit" },
  denial: { open: () => import("../pages/denial.js") },
};
