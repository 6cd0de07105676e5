// SPDX-License-Identifier: Apache-2.0
// Lists as CSV files for spreadsheets, made in the browser.

// A spreadsheet runs a cell that begins with one of these as a formula, also behind spaces.
const FORMULA = /^\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** Return a value as a cell: quoted, and no formula. @param {unknown} value */
export function cell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  return `"${(FORMULA.test(text) ? "'" : "") + text.replaceAll('"', '""')}"`;
}

/** Return rows as CSV text (RFC 4180). @param {string[]} head @param {unknown[][]} rows */
export function csv(head, rows) {
  return [head, ...rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
}

/** Save text as a file of the reader. @param {string} name @param {string} text @param {string} [type] */
export function download(name, text, type = "text/csv;charset=utf-8") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name.replaceAll(/[^\w.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
