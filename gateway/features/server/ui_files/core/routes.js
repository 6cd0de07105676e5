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
  users: { open: () => import("../pages/users.js"), menu: "Users", group: "People" },
  user: { open: () => import("../pages/user.js") },
  roles: { open: () => import("../pages/roles.js"), menu: "Roles", group: "People" },
  role: { open: () => import("../pages/role.js") },
  denial: { open: () => import("../pages/denial.js") },
};
