// SPDX-License-Identifier: Apache-2.0
// The columns of a table or view, with their tags, and with the masks and the row filter as they apply to the reader.

import { html, nothing } from "lit";

import { badge } from "./small.js";

/** Return a field's type as text. @param {any} type @returns {string} */
export function typeText(type) {
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

/** Return the mask of a column as text. @param {any} each a restriction of one column */
export function maskText({ action }) {
  return typeof action === "string" ? action : (action?.type ?? action?.action ?? JSON.stringify(action));
}

/**
 * Draw the current schema.
 * @param {any} metadata the metadata of the table
 * @param {{tags?: Map<number, string[]>, restrictions?: any, menu?: (field: any) => unknown}} [more] tags by field id, the read
 *   restrictions of the reader, and what is drawn in the last cell of a column
 */
export function schemaTable(metadata, { tags = new Map(), restrictions = null, menu } = {}) {
  const schema = metadata.schemas.find((/** @type {any} */ each) => each["schema-id"] === metadata["current-schema-id"]);
  const masks = new Map((restrictions?.["required-column-projections"] ?? []).map((/** @type {any} */ each) => [each["field-id"], maskText(each)]));
  const filter = restrictions?.["required-row-filter"];
  return html`${filter === undefined || filter === null
      ? nothing
      : html`<p>${badge("rows are filtered for you", "warn")} <code>${JSON.stringify(filter)}</code></p>`}
    <table>
      <caption>Columns</caption>
      <thead>
        <tr><th scope="col">Id</th><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Required</th><th scope="col">Tags</th><th scope="col">For you</th><th scope="col">Comment</th>${menu === undefined ? nothing : html`<th scope="col">Actions</th>`}</tr>
      </thead>
      <tbody>
        ${schema.fields.map(
          (/** @type {any} */ each) => html`<tr>
            <td>${each.id}</td>
            <th scope="row">${each.name}</th>
            <td><code>${typeText(each.type)}</code></td>
            <td>${each.required ? "yes" : "no"}</td>
            <td>${(tags.get(each.id) ?? []).map((tag) => badge(tag))}</td>
            <td>${masks.has(each.id) ? badge(`masked: ${masks.get(each.id)}`, "warn") : "as stored"}</td>
            <td>${each.doc ?? nothing}</td>
            ${menu === undefined ? nothing : html`<td>${menu(each)}</td>`}
          </tr>`,
        )}
      </tbody>
    </table>`;
}

/** Return the columns of the current schema. @param {any} metadata @returns {any[]} */
export function currentFields(metadata) {
  return metadata?.schemas.find((/** @type {any} */ each) => each["schema-id"] === metadata["current-schema-id"])?.fields ?? [];
}

/** Draw partitioning and sort order. @param {any} metadata */
export function layoutOf(metadata) {
  const schema = metadata.schemas.find((/** @type {any} */ each) => each["schema-id"] === metadata["current-schema-id"]);
  const nameOf = (/** @type {number} */ id) => schema.fields.find((/** @type {any} */ each) => each.id === id)?.name ?? `field ${id}`;
  const spec = (metadata["partition-specs"] ?? []).find((/** @type {any} */ each) => each["spec-id"] === metadata["default-spec-id"]);
  const order = (metadata["sort-orders"] ?? []).find((/** @type {any} */ each) => each["order-id"] === metadata["default-sort-order-id"]);
  const partitions = (spec?.fields ?? []).map((/** @type {any} */ each) => `${each.transform}(${nameOf(each["source-id"])})`);
  const sorted = (order?.fields ?? []).map((/** @type {any} */ each) => `${each.transform}(${nameOf(each["source-id"])}) ${each.direction}`);
  return html`<dl class="facts">
    <dt>Partitioned by</dt><dd>${partitions.length === 0 ? "not partitioned" : partitions.join(", ")}</dd>
    <dt>Sorted by</dt><dd>${sorted.length === 0 ? "no order" : sorted.join(", ")}</dd>
  </dl>`;
}
