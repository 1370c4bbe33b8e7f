// Rows that are links, gone through by keys.

/** Focus the next or the previous row. @param {HTMLElement} main @param {number} by */
export function stepRows(main, by) {
  const rows = /** @type {HTMLElement[]} */ ([...main.querySelectorAll("a.look, a.runname, a.rowlink")]);
  if (!rows.length) return;
  const at = rows.indexOf(/** @type {any} */ (document.activeElement));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

/** Follow the row that has the focus. @param {HTMLElement} main */
export function openRow(main) {
  const row = document.activeElement;
  if (main.contains(row) && row.matches("a")) /** @type {HTMLElement} */ (row).click();
}
