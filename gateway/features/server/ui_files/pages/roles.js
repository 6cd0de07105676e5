// SPDX-License-Identifier: Apache-2.0
// The roles of a project, with a filter by name.

import { html } from "lit";

import { ask, change, get } from "../core/api.js";
import { actionsOn, projectOf, projects } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address, go, setState } from "../core/router.js";
import { openDialog } from "../parts/dialog.js";
import { entry, field, projectChoice } from "../parts/forms.js";
import { asCode, title } from "../parts/heading.js";
import "../parts/long-list.js";
import { menu } from "../parts/menu.js";
import { empty, when } from "../parts/small.js";

/** Return a source of the roles of a project. @param {string} project @param {string} name */
function rolesOf(project, name) {
  return async (/** @type {string | null} */ token) => {
    if (name !== "") {
      const { roles } = await ask("/management/v1/search/role", { search: name }, { project });
      return { rows: roles, next: null };
    }
    const answer = await get("/management/v1/role?pageSize=500" + (token === null ? "" : "&pageToken=" + encodeURIComponent(token)), { project });
    return { rows: answer.roles, next: answer["next-page-token"] ?? null };
  };
}

export default class RolesPage extends Page {
  /** @param {import("../core/router.js").Route} from @param {import("../core/router.js").Route} to */
  same(from, to) {
    return super.same(from, to) && from.query.name === to.query.name;
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ query }) {
    const [all, project] = await Promise.all([projects(), projectOf(query.project)]);
    if (project === null) {
      return { project };
    }
    const id = project["project-id"];
    const actions = await actionsOn({ type: "project", id, name: project["project-name"] });
    return { all, project: id, actions, name: query.name ?? "", source: rolesOf(id, query.name ?? "") };
  }

  /** @param {any} data */
  body({ all, project, actions, name, source }) {
    if (project === null) {
      return html`${title("Roles")} ${empty("You see no project.", "Ask an administrator of a project for access.")}`;
    }
    const columns = [
      { label: "Name", draw: (/** @type {any} */ each) => html`<a href=${address("role", [each.id], { project })}>${each.name}</a>` },
      { label: "Description", draw: (/** @type {any} */ each) => each.description ?? "", width: "minmax(10rem, 2fr)" },
      { label: "Provider", draw: (/** @type {any} */ each) => each["provider-id"] },
      { label: "Since", draw: (/** @type {any} */ each) => when(each["created-at"]) },
    ];
    const filter = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      setState({ name: String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("name")) });
    };
    return html`${title("Roles", "A role has members, and its rights are theirs. Roles can be members of roles.")}
      ${projectChoice(all, project)}
      <div class="bar">
        <form class="question" role="search" @submit=${filter}>
          <label>Name <input name="name" .value=${name} autocomplete="off" /></label><button type="submit">Filter</button>
        </form>
        ${menu("Roles", [entry("Create a role …", actions, "create_role", "the project", () => this.create(project))])}
      </div>
      <lg-long-list label="Roles" .source=${source} .columns=${columns} .empty=${"No role here that you may see. Create one from the menu."}></lg-long-list>
      ${asCode()}`;
  }

  /** @param {string} project */
  create(project) {
    let id = "";
    void openDialog({
      title: "Create a role",
      action: "Create",
      body: html`${field({ name: "name", label: "Name", required: true })} ${field({ name: "description", label: "Description", help: "What its members do. Empty: none." })}`,
      submit: async ({ name, description }) => {
        const made = await change("POST", "/management/v1/role", { name, ...(description === "" ? {} : { description }) }, { project });
        id = made.id;
      },
    }).then((done) => done && go(address("role", [id], { project })));
  }
}
