"use strict";
// The form of a HIT: it is sent where there is a verdict.
// No template strings here: Mechanical Turk reads a dollar sign with braces as the name of a column.
const form = document.getElementById("form");

form.onsubmit = (event) => {
  const sent = document.getElementById("sent");
  const hasVerdict = form.querySelector("input[name=verdict]:checked") !== null;
  document.getElementById("alert").hidden = hasVerdict;
  if (!hasVerdict || sent !== null) event.preventDefault();
  if (!hasVerdict) {
    form.querySelector("input[name=verdict]").focus();
    return false;
  }
  if (sent !== null) {
    sent.textContent = JSON.stringify([Object.fromEntries(new FormData(form))], null, 1);
    sent.hidden = false;
    return false;
  }
  return true;
};
