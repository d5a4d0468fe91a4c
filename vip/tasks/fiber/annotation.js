// The form of a HIT: it is sent where each blank has its answers.
const form = document.getElementById("form");

// The last HIT may have fewer blanks than the page.
document.querySelectorAll(".question").forEach((field) => { if (!field.querySelector(".sentence").textContent.includes(BLANK)) field.remove(); });
const questions = [...document.querySelectorAll(".question")].map((field) => new Question(field));

form.onsubmit = (event) => {
  const open = questions.filter((question) => !question.isComplete);
  const sent = document.getElementById("sent");
  if (open.length > 0 || sent !== null) event.preventDefault();
  if (open.length > 0) {
    open[0].box.focus();
    return false;
  }
  if (sent !== null) {
    sent.textContent = JSON.stringify([Object.fromEntries(new FormData(form))], null, 1);
    sent.hidden = false;
    return false;
  }
  return true;
};
