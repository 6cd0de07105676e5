// SPDX-License-Identifier: Apache-2.0
// The data policies of a project: masks and row filters, in words.

import { html } from "lit";

import { change, get } from "../core/api.js";
import { pageOf, projectOf } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address, go } from "../core/router.js";
import { openDialog } from "../parts/dialog.js";
import { asCode, title } from "../parts/heading.js";
import { policyBody, policyFields } from "../parts/policy-form.js";
import { definitionText } from "../parts/policy-words.js";
import { empty } from "../parts/small.js";
import "../parts/long-list.js";

const POLICIES = "/management/v1/data-policy";

export default class DataPoliciesPage extends Page {
  /** @param {import("../core/router.js").Route} route */
  async load({ query }) {
    const project = await projectOf(query.project);
    const source = async (/** @type {string | null} */ token) => {
      const answer = await get(`${POLICIES}?pageSize=100${token === null ? "" : "&pageToken=" + encodeURIComponent(token)}`, { project: project?.["project-id"] });
      return { rows: answer["data-policies"], next: answer["next-page-token"] ?? null };
    };
    return { project, source };
  }

  /** @param {any} data */
  body({ project, source }) {
    const text = "Rules that hide values of columns or rows. They apply in every engine that is trusted.";
    if (project === null) {
      return html`${title("Data policies", text)}${empty("You see no project.")}`;
    }
    const columns = [
      { label: "Policy", draw: (/** @type {any} */ row) => html`<a href=${pageOf({ type: "data-policy", id: row.id, name: row.name, project: row["project-id"] })}>${row.name}</a>` },
      { label: "Kind", width: "7rem", draw: (/** @type {any} */ row) => row.definition.kind },
      { label: "Effect", width: "minmax(14rem, 3fr)", draw: (/** @type {any} */ row) => html`<span title=${definitionText(row.definition)}>${definitionText(row.definition)}</span>` },
      { label: "Applies to", draw: (/** @type {any} */ row) => row["applies-to"] },
      { label: "Version", width: "6rem", draw: (/** @type {any} */ row) => row.version },
    ];
    return html`${title(`Data policies of ${project["project-name"]}`, text)}
      <p class="buttons">
        <button type="button" class="primary" @click=${() => this.create(project["project-id"])}>New policy …</button>
        <a class="button" href=${address("mapping-tables", [], { project: this.route.query.project })}>Mapping tables</a>
      </p>
      <lg-long-list label="Data policies" .source=${source} .columns=${columns} .empty=${"No data policy here that you may see."}></lg-long-list>
      ${asCode()}`;
  }

  /** @param {string} project */
  create(project) {
    return openDialog({
      title: "New data policy",
      action: "Create",
      body: policyFields(),
      submit: async (values) => {
        const made = await change("POST", POLICIES, { ...policyBody(values), "project-id": project });
        go(pageOf({ type: "data-policy", id: made.id, name: made.name, project }));
      },
    });
  }
}
