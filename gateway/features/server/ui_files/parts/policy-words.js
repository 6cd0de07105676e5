// SPDX-License-Identifier: Apache-2.0
// Definitions of data policies in words, and the lines in which two versions differ.

import { words } from "../core/format.js";

/** The masks of the API, in words. @type {Record<string, string>} */
export const MASKS = {
  "mask-alphanum": "each letter and digit is replaced",
  "mask-to-fixed-value": "a fixed value replaces it",
  "replace-with-null": "it is null",
  "sha-256-global": "a hash replaces it, the same in all queries",
  "sha-256-query-local": "a hash replaces it, another one in each query",
  "show-first-4": "only its first four characters are shown",
  "show-last-4": "only its last four characters are shown",
  "truncate-to-month": "only its month is shown",
  "truncate-to-year": "only its year is shown",
};

/** @type {Record<string, string>} */
const OPERATORS = { eq: "=", "not-eq": "≠", lt: "<", "lt-eq": "≤", gt: ">", "gt-eq": "≥", "starts-with": "starts with", "not-starts-with": "does not start with" };

/** @param {any} column */
function columnText(column) {
  return column.tag ? `a column with the tag ${column.tag}` : column.name;
}

/** @param {any} value */
function valueText(value) {
  if (value === null || typeof value !== "object") {
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) {
    return value.map(valueText).join(", ");
  }
  return value.source === "principal" ? "the id of the reader" : value.source === "claim" ? `the reader's claim ${value.name}` : `the reader's values in the mapping table ${value.name}`;
}

/** Return a test of a row filter in words. @param {any} test @returns {string} */
export function testText(test) {
  switch (test.type) {
    case "constant":
      return test.value ? "always" : "never";
    case "and":
    case "or":
      return test.operands.map((/** @type {any} */ each) => (["and", "or"].includes(each.type) ? `(${testText(each)})` : testText(each))).join(` ${test.type} `);
    case "not":
      return `not (${testText(test.operand)})`;
    case "is-null":
      return `${columnText(test.column)} is ${test.negated ? "not " : ""}null`;
    case "compare":
      return `${columnText(test.column)} ${OPERATORS[test.operator] ?? test.operator} ${valueText(test.value)}`;
    case "in":
      return `${columnText(test.column)} is ${test.negated ? "none" : "one"} of ${valueText(test.values)}`;
    case "has-role":
      return `the reader is a member of role ${test.role}`;
    default:
      return JSON.stringify(test);
  }
}

/** Return a definition in words. @param {any} definition */
export function definitionText(definition) {
  if (definition.kind === "row-filter") {
    return `Shows only the rows for which this holds: ${testText(definition.test)}.`;
  }
  const columns = (definition.columns ?? []).map(columnText).join(", ");
  return `Masks ${columns === "" ? "no column" : columns}: ${MASKS[definition.action] ?? words(definition.action)}.`;
}

/**
 * Return the lines of two texts, each with its origin: "same", "old" or "new" (a longest common subsequence of lines).
 * @param {string} before @param {string} after @returns {{kind: "same" | "old" | "new", text: string}[]}
 */
export function lineChanges(before, after) {
  const old = before.split("\n");
  const now = after.split("\n");
  const lengths = Array.from({ length: old.length + 1 }, () => new Array(now.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      lengths[i][j] = old[i] === now[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  /** @type {{kind: "same" | "old" | "new", text: string}[]} */
  const lines = [];
  for (let i = 0, j = 0; i < old.length || j < now.length; ) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push({ kind: "same", text: old[i++] });
      j++;
    } else if (j >= now.length || (i < old.length && lengths[i + 1][j] >= lengths[i][j + 1])) {
      lines.push({ kind: "old", text: old[i++] });
    } else {
      lines.push({ kind: "new", text: now[j++] });
    }
  }
  return lines;
}
