"use strict";
// A filter and an order for the list of runs, which is whole and sorted by name without them.
(() => {
  const list = document.querySelector(".runs");
  const tools = document.querySelector(".tools");
  if (!tools) return;
  const rows = [...list.children].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const [filter, order, count] = ["filter", "order", "count"].map((id) => document.getElementById(id));

  const show = () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const { row, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = shown < rows.length ? shown + " of " + rows.length : "";
  };
  const sort = () => {
    const value = ({ row }) => Number(row.dataset[order.value]);
    const sorted = order.value === "name" ? rows : [...rows].sort((one, other) => value(other) - value(one));
    list.append(...sorted.map(({ row }) => row));
  };

  filter.addEventListener("input", show);
  order.addEventListener("change", sort);
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.hidden = false;
  show();
  sort();
})();
