// SPDX-License-Identifier: Apache-2.0
// The tags that are defined in a project.

import { html } from "lit";

import { change, get } from "../core/api.js";
import { pageOf, projectOf } from "../core/objects.js";
import { Page } from "../core/page.js";
import { go } from "../core/router.js";
import { openDialog } from "../parts/dialog.js";
import { asCode, title } from "../parts/heading.js";
import { empty } from "../parts/small.js";
import "../parts/long-list.js";

const TAGS = "/management/v1/tag-definition";
export const SCOPES = ["warehouse", "namespace", "table", "view", "generic-table", "column"];

/** Draw the choice of the objects that can have a tag. @param {string[]} chosen */
export function scopeBoxes(chosen) {
  return html`<fieldset class="choices"><legend>Can be attached to</legend>
    ${SCOPES.map((each) => html`<label class="choice"><input type="checkbox" name="scope:${each}" ?checked=${chosen.includes(each)} /> <span>${each}</span></label>`)}
  </fieldset>`;
}

/** @param {Record<string, string>} values */
export function scopeOf(values) {
  return SCOPES.filter((each) => values[`scope:${each}`] !== undefined);
}

/** Return the values of a text with one value a line. @param {string} text */
export function linesOf(text) {
  return text.split("\n").map((each) => each.trim()).filter((each) => each !== "");
}

export default class TagsPage extends Page {
  /** @param {import("../core/router.js").Route} route */
  async load({ query }) {
    const project = await projectOf(query.project);
    const source = async (/** @type {string | null} */ token) => {
      const answer = await get(`${TAGS}?pageSize=100${token === null ? "" : "&pageToken=" + encodeURIComponent(token)}`, { project: project?.["project-id"] });
      return { rows: answer["tag-definitions"], next: answer["next-page-token"] ?? null };
    };
    return { project, source };
  }

  /** @param {any} data */
  body({ project, source }) {
    const text = "Tags mark objects and columns. Data policies that are bound to a tag apply wherever it is attached.";
    if (project === null) {
      return html`${title("Tags", text)}${empty("You see no project.")}`;
    }
    const columns = [
      { label: "Tag", draw: (/** @type {any} */ row) => html`<a href=${pageOf({ type: "tag", id: row.id, name: row.name, project: project["project-id"] })}>${row.name}</a>` },
      { label: "For", draw: (/** @type {any} */ row) => row.scope.join(", ") },
      { label: "Values", draw: (/** @type {any} */ row) => (row["value-kind"] === "enumerated" ? (row["allowed-values"] ?? []).join(", ") : row["value-kind"]) },
      { label: "Description", width: "minmax(12rem, 2fr)", draw: (/** @type {any} */ row) => row.description ?? "" },
    ];
    return html`${title(`Tags of ${project["project-name"]}`, text)}
      <p><button type="button" class="primary" @click=${() => this.create(project["project-id"])}>New tag …</button></p>
      <lg-long-list label="Tags" .source=${source} .columns=${columns} .empty=${"No tag is defined here that you may see."}></lg-long-list>
      ${asCode()}`;
  }

  /** @param {string} project */
  create(project) {
    return openDialog({
      title: "New tag",
      action: "Create",
      body: html`<p><label>Name <input name="name" required autocomplete="off" /></label></p>
        <p><label>Description <input name="description" autocomplete="off" /></label></p>
        ${scopeBoxes(["column", "table"])}
        <p><label>Values
            <select name="kind"><option value="marker">none: the tag alone</option><option value="enumerated">one of a list</option><option value="free-text">free text</option></select></label></p>
        <p><label>Values of the list, one a line <textarea name="values" rows="3"></textarea></label></p>`,
      submit: async (values) => {
        const made = await change(
          "POST",
          TAGS,
          {
            name: values.name,
            scope: scopeOf(values),
            "value-kind": values.kind,
            ...(values.description === "" ? {} : { description: values.description }),
            ...(values.kind === "enumerated" ? { "allowed-values": linesOf(values.values) } : {}),
          },
          { project },
        );
        go(pageOf({ type: "tag", id: made.id, name: made.name, project }));
      },
    });
  }
}
