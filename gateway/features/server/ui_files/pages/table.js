// SPDX-License-Identifier: Apache-2.0
// A table: its schema as it applies to the reader, snapshots, properties, and the rights on it.

import { html, nothing } from "lit";

import { get } from "../core/api.js";
import { count } from "../core/format.js";
import { actionsOn, catalogPath, tabularNamed } from "../core/objects.js";
import { Page } from "../core/page.js";
import { accessTabs } from "../parts/access.js";
import { asCode, heading } from "../parts/heading.js";
import { badge, empty, when } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";
import "../parts/explain-form.js";

/** Return a field's type as text. @param {any} type @returns {string} */
function typeText(type) {
  if (typeof type === "string") {
    return type;
  }
  switch (type.type) {
    case "list":
      return `list<${typeText(type.element)}>`;
    case "map":
      return `map<${typeText(type.key)}, ${typeText(type.value)}>`;
    default:
      return `struct<${type.fields.map((/** @type {any} */ each) => `${each.name}: ${typeText(each.type)}`).join(", ")}>`;
  }
}

export default class TablePage extends Page {
  /** @param {import("../core/router.js").Route} route */
  async load({ parts, query }) {
    const named = await tabularNamed("table", parts[0] ?? "", parts[1] ?? "", query.project);
    // The page needs no storage credentials, so none are vended.
    const loaded = await get(catalogPath(named), { headers: { "X-Iceberg-Access-Delegation": "client-managed" } });
    const on = { ...named, id: loaded.metadata["table-uuid"] };
    return { on, loaded, actions: await actionsOn(on) };
  }

  /** @param {any} data */
  body({ on, loaded, actions }) {
    const { metadata } = loaded;
    return html`${heading(on, { badges: actions.has("read_data") ? badge("you may read", "good") : badge("metadata only", "warn") })}
      ${tabs({
        schema: { label: "Schema", draw: () => this.schema(metadata) },
        snapshots: { label: "Snapshots", draw: () => this.snapshots(metadata) },
        properties: { label: "Properties", draw: () => this.properties(metadata) },
        ...accessTabs(on),
        why: { label: "Why", draw: () => html`<lg-explain-form .on=${on} who=${this.route.query.who ?? ""} action=${this.route.query.action ?? ""}></lg-explain-form>` },
      })}
      ${asCode()}`;
  }

  /** @param {any} metadata */
  schema(metadata) {
    const schema = metadata.schemas.find((/** @type {any} */ each) => each["schema-id"] === metadata["current-schema-id"]);
    return html`<table>
      <caption>Columns</caption>
      <thead><tr><th scope="col">Id</th><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Required</th><th scope="col">Comment</th></tr></thead>
      <tbody>
        ${schema.fields.map(
          (/** @type {any} */ each) => html`<tr>
            <td>${each.id}</td><th scope="row">${each.name}</th><td><code>${typeText(each.type)}</code></td><td>${each.required ? "yes" : "no"}</td><td>${each.doc ?? nothing}</td>
          </tr>`,
        )}
      </tbody>
    </table>`;
  }

  /** @param {any} metadata */
  snapshots(metadata) {
    const rows = [...(metadata.snapshots ?? [])].reverse();
    if (rows.length === 0) {
      return empty("This table has no snapshot: nothing was written yet.");
    }
    const names = Object.entries(metadata.refs ?? {});
    return html`<ol class="timeline">
      ${rows.map(
        (each) => html`<li>
          ${when(each["timestamp-ms"])} <code>${each["snapshot-id"]}</code> ${badge(each.summary?.operation ?? "snapshot")}
          ${names.filter(([, ref]) => /** @type {any} */ (ref)["snapshot-id"] === each["snapshot-id"]).map(([name, ref]) => badge(`${/** @type {any} */ (ref).type} ${name}`, "good"))}
          <span class="quiet">${each.summary?.["total-records"] === undefined ? nothing : `${count(Number(each.summary["total-records"]))} rows`}</span>
        </li>`,
      )}
    </ol>`;
  }

  /** @param {any} metadata */
  properties(metadata) {
    const facts = { location: metadata.location, "format-version": metadata["format-version"], ...metadata.properties };
    return html`<dl class="facts">${Object.entries(facts).map(([name, value]) => html`<dt>${name}</dt><dd><code>${value}</code></dd>`)}</dl>`;
  }
}
