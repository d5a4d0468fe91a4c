"use strict";
// Saves the questions of the page as a csv in the published form; one that is not complete is marked and left out.
const button = document.getElementById("save");

function quoted(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return /[",]/.test(line) ? `"${line.replaceAll('"', '""')}"` : line;
}

function row(field) {
  const options = [...field.querySelectorAll("input[type=text]")].map((input) => input.value.replace(/\s+/g, " ").trim());
  const right = field.querySelector("input[type=radio]:checked");
  const isGood = right !== null && options.every(Boolean) && new Set(options).size === options.length;
  field.classList.toggle("bad", !isGood);
  const about = field.dataset;
  const cells = [about.video, about.frames, "", "", about.question, right?.value ?? "", about.qid, about.type, ...options];
  return isGood ? cells.map(quoted).join(",") : null;
}

function csv() {
  const rows = [...document.querySelectorAll("fieldset")].map(row);
  const good = rows.filter((line) => line !== null);
  document.getElementById("saved").textContent = `${good.length} of ${rows.length} questions saved`;
  return [button.dataset.columns, ...good].join("\n") + "\n";
}

button.addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = button.dataset.file;
  link.click();
  URL.revokeObjectURL(link.href);
});
