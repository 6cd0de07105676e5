// SPDX-License-Identifier: Apache-2.0
// Names as text, as on the command line (`gateway/apply/references.py`): a part with a dot, a slash or a quotation mark is in
// quotation marks, and quotation marks in it are doubled, such as `hr."a.b"`.

/** Return a part of a name, in quotation marks if it needs them. @param {string} name */
export function quoted(name) {
  return /^[^"./]+$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** Return the levels of a namespace and a name as one text. @param {string[]} levels */
export function joined(levels) {
  return levels.map(quoted).join(".");
}

/** Return the parts of a text between dots outside of quotation marks. Throws Error. @param {string} text */
export function partsOf(text) {
  const found = [...text.matchAll(/(?:"((?:[^"]|"")*)"|([^"./]+))(\.|$)/gy)];
  const length = found.reduce((sum, [whole]) => sum + whole.length, 0);
  const parts = found.map(([, inQuotes, plain]) => (inQuotes === undefined ? plain : inQuotes.replaceAll('""', '"')));
  if (length !== text.length || text.endsWith(".") || parts.length === 0 || parts.includes("")) {
    throw new Error(`“${text}” is no name. Write NAMESPACE.NAME; a part with a dot, a slash or a quotation mark is in quotation marks, such as hr."a.b".`);
  }
  return parts;
}

/**
 * Read a name such as `table/demo/hr.people`: its type, its warehouse or own name, and the levels behind. Throws Error.
 * @param {string} text
 * @returns {{type: string, first: string, levels: string[]}}
 */
export function parseName(text) {
  const [type = "", ...rest] = text.trim().match(/(?:"(?:[^"]|"")*"|[^"/])+/g) ?? [];
  if (["namespace", "table", "view", "generic-table"].includes(type)) {
    const [warehouse = "", path = "", ...more] = rest;
    const least = type === "namespace" ? 1 : 2;
    const levels = path === "" ? [] : partsOf(path);
    if (more.length === 0 && levels.length >= least) {
      return { type, first: warehouse.startsWith('"') ? partsOf(warehouse).join(".") : warehouse, levels };
    }
  } else if (rest.length > 0) {
    // The names of other objects may contain dots and slashes.
    return { type, first: text.trim().slice(type.length + 1), levels: [] };
  }
  throw new Error(`“${text}” names no object. Write its type and its name, such as table/demo/hr.people, namespace/demo/hr, warehouse/demo or role/its-id.`);
}
