// SPDX-License-Identifier: Apache-2.0
// Texts for values: times in the reader's zone, durations, sizes.

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const NUMBER = new Intl.NumberFormat();
/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [
  ["year", 31536000],
  ["month", 2592000],
  ["week", 604800],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];

/** Return a time in the reader's zone. @param {string | number} value RFC 3339 text, or milliseconds */
export function time(value) {
  return TIME.format(new Date(value));
}

/** Return the distance of a time from now, such as "in 3 days". @param {string | number} value */
export function relative(value) {
  const seconds = (new Date(value).getTime() - Date.now()) / 1000;
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) {
      return RELATIVE.format(Math.round(seconds / length), unit);
    }
  }
  return RELATIVE.format(Math.round(seconds), "second");
}

/** Return a duration in its largest whole unit. @param {number} seconds */
export function duration(seconds) {
  for (const [unit, length] of UNITS) {
    if (seconds >= length) {
      const count = Math.round(seconds / length);
      return `${count} ${unit}${count === 1 ? "" : "s"}`;
    }
  }
  return `${seconds} seconds`;
}

/** @param {number} value */
export function count(value) {
  return NUMBER.format(value);
}

/** Return a size with a binary unit. @param {number} value bytes */
export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const step = value < 1 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), units.length - 1);
  return `${(value / 1024 ** step).toLocaleString(undefined, { maximumFractionDigits: 1 })} ${units[step]}`;
}

/** Return a name of the API as words: "can_read_data" becomes "read data". @param {string} name */
export function words(name) {
  return name.replace(/^can_/, "").replace(/[_-]/g, " ");
}
