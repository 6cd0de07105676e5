// SPDX-License-Identifier: Apache-2.0
// A role: its members, its nesting as a graph, its grants, and what its members can do through it.

import { html, nothing } from "lit";

import { change, get, path } from "../core/api.js";
import { actionsOn, managementPath, warehouses } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address, go } from "../core/router.js";
import { confirmDestruction, openDialog } from "../parts/dialog.js";
import { entry, field, yaml } from "../parts/forms.js";
import { asCode, heading } from "../parts/heading.js";
import { menu } from "../parts/menu.js";
import "../parts/nesting.js";
import { grantList, grantsOf } from "../parts/rights.js";
import { badge, copied, identityOf, when } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";

/** Return a source of the members of a role. @param {any} on @param {string} below */
function membersOf(on, below) {
  return async (/** @type {string | null} */ token) => {
    const answer = await get(`${managementPath(on)}/members${below}?pageSize=500${token === null ? "" : "&pageToken=" + encodeURIComponent(token)}`);
    return { rows: answer.members, next: answer["next-page-token"] ?? null };
  };
}

export default class RolePage extends Page {
  static properties = { ...Page.properties, notice: { state: true } };

  constructor() {
    super();
    this.notice = "";
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ parts }) {
    const id = decodeURIComponent(parts[0] ?? "");
    const role = { type: /** @type {const} */ ("role"), id, name: "" };
    const actions = await actionsOn(role);
    // A member that may not read the role sees its name.
    const row = await get(managementPath(role) + (actions.has("read") ? "" : "/metadata"));
    const on = { ...role, name: row.name, project: row["project-id"] };
    const names = new Map((await warehouses(on.project).catch(() => [])).map((each) => [each["warehouse-id"], each.name]));
    return { on, row, actions, names, members: membersOf(on, ""), all: membersOf(on, "/transitive"), grants: grantsOf({ role: id }, on.project) };
  }

  /** @param {any} data */
  body({ on, row, actions, names, members, all, grants }) {
    return html`${heading(on, {
        badges: row["provider-id"] === "lakekeeper" ? nothing : badge(`from ${row["provider-id"]}`),
        menu: menu("Role", [
          entry("Add a member …", actions, "manage_role_assignments", "this role", () => this.add(on)),
          entry("Rename or describe …", actions, "update", "this role", () => this.change(on, row)),
          entry("Delete …", actions, "delete", "this role", () => this.delete(on)),
        ]),
      })}
      <p role="status">${this.notice}</p>
      ${tabs({
        members: { label: "Members", draw: () => this.members(on, members, actions) },
        everyone: { label: "All in it", draw: () => this.members(on, all, new Set()) },
        nesting: { label: "Nesting", draw: () => html`<lg-nesting .on=${on}></lg-nesting>` },
        grants: { label: "Grants", draw: () => grantList(grants, names, () => void this.reload()) },
        can: { label: "What it can do", draw: () => html`<lg-what-can .principal=${{ role: on.id }} project=${on.project} .names=${names}></lg-what-can>` },
        facts: { label: "About", draw: () => this.facts(on, row) },
      })}
      ${asCode(`version: 1\nprojects:\n  - id: ${yaml(on.project)}\n    roles:\n      - name: ${yaml(on.name)}\n${row.description ? `        description: ${yaml(row.description)}\n` : ""}`)}`;
  }

  /** @param {any} on @param {unknown} source @param {Set<string>} actions */
  members(on, source, actions) {
    const remove = {
      label: "Action",
      width: "8rem",
      draw: (/** @type {any} */ each) => html`<button type="button" class="small" aria-label="Remove ${each.name ?? each.id}" @click=${() => this.removeMember(on, each)}>Remove</button>`,
    };
    const columns = [
      { label: "Member", draw: (/** @type {any} */ each) => html`<a href=${address(each.type, [encodeURIComponent(each.id)])}>${each.name ?? each.id}</a>` },
      { label: "Type", draw: (/** @type {any} */ each) => (each.type === "role" ? "role" : each["user-type"] === "application" ? "machine identity" : "person") },
      { label: "Id", draw: (/** @type {any} */ each) => html`<code>${each.id}</code>` },
      ...(actions.has("manage_role_assignments") ? [remove] : []),
    ];
    return html`<lg-long-list label="Members" .source=${source} .columns=${columns} .empty=${"No member that you may see. Add one from the menu."}></lg-long-list>`;
  }

  /** @param {any} on @param {any} row */
  facts(on, row) {
    return html`<dl class="facts">
      <dt>Description</dt><dd>${row.description ?? html`<span class="quiet">none</span>`}</dd>
      <dt>Project</dt><dd>${copied(on.project, "the project's id")}</dd>
      <dt>Provider</dt><dd>${row["provider-id"]}</dd>
      <dt>Id there</dt><dd>${copied(row["source-id"], "the id at the provider")}</dd>
      <dt>Name in tokens</dt><dd>${copied(row.ident, "the name in tokens")}</dd>
      <dt>Created</dt><dd>${when(row["created-at"])}</dd>
      <dt>Changed</dt><dd>${when(row["updated-at"])}</dd>
    </dl>`;
  }

  /** @param {string} notice */
  changed(notice) {
    this.notice = notice;
    void this.reload();
  }

  /** @param {any} on */
  add(on) {
    void openDialog({
      title: `Add a member to ${on.name}`,
      action: "Add",
      body: html`${field({ name: "member", label: "Member", required: true, help: "A user such as oidc~alice, or a role as role/its-id. It gets all rights of this role." })}`,
      submit: ({ member }) => {
        const { user, role } = /** @type {{user?: string, role?: string}} */ (identityOf(member));
        return change("POST", `${managementPath(on)}/members`, { members: [role === undefined ? { type: "user", id: user } : { type: "role", id: role }] });
      },
    }).then((done) => done && this.changed("The member was added."));
  }

  /** @param {any} on @param {any} member */
  removeMember(on, member) {
    void openDialog({
      title: "Remove a member",
      action: "Remove",
      danger: true,
      body: html`<p>${member.name ?? member.id} loses the rights that come only from ${on.name}, at once. Credentials for files that were issued before stay valid until they
        expire. You can add it again.</p>`,
      submit: () => change("DELETE", managementPath(on) + path`/members/${member.type}/${member.id}`),
    }).then((done) => done && this.changed("The member was removed."));
  }

  /** @param {any} on @param {any} row */
  change(on, row) {
    void openDialog({
      title: "Change a role",
      action: "Save",
      body: html`${field({ name: "name", label: "Name", value: on.name, required: true })} ${field({ name: "description", label: "Description", value: row.description ?? "" })}`,
      submit: ({ name, description }) => change("POST", managementPath(on), { name, description: description === "" ? null : description }),
    }).then((done) => done && this.changed("The role was changed."));
  }

  /** @param {any} on */
  delete(on) {
    void confirmDestruction({
      title: "Delete a role",
      name: on.name,
      action: "Delete",
      consequence: html`The role ${on.name}, its memberships and all its grants are deleted. Its members lose the rights that come only from it, at once. This cannot be undone.
        Credentials for files that were issued before stay valid until they expire.`,
      submit: () => change("DELETE", managementPath(on)),
    }).then((done) => done && go(address("roles", [], { project: on.project })));
  }
}
