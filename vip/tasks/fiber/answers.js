"use strict";
// The answers to a blank: Enter adds one; none is there twice; the most natural stands first. Mechanical Turk's page and that of `vip review` share it.
// No template strings here: Mechanical Turk reads a dollar sign with braces as the name of a column.
const BLANK = "_____";
const LEAST = 2;
const UNAVAILABLE = ["unavailable video", "unavailable video 2"];

// Punctuation goes first, articles after it.
function normalized(text) {
  const letters = text.toLowerCase().replace(/[!-\/:-@\[-`{-~]/g, "");
  return letters.replace(/\b(?:a|an|the)\b/g, " ").replace(/\s+/g, " ").trim();
}

function made(name, parent, values) {
  return parent.appendChild(Object.assign(document.createElement(name), values));
}

class Question {
  constructor(field) {
    this.field = field;
    this.place = field.dataset.place;
    this.list = field.querySelector(".answers");
    this.alert = field.querySelector(".alert");
    const sentence = field.querySelector(".sentence");
    const [before, ...after] = sentence.textContent.split(BLANK);
    sentence.textContent = before;
    this.box = made("input", sentence, { type: "text", name: "answer-input-" + this.place, maxLength: 500, autocomplete: "off" });
    this.box.placeholder = "an answer, then Enter";
    this.box.setAttribute("aria-label", "Answer to blank " + this.place);
    sentence.append(after.join(BLANK));
    this.box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      this.addTyped();
    });
    field.querySelector(".gone").addEventListener("click", () => {
      this.list.replaceChildren();
      UNAVAILABLE.forEach((text) => this.add(text));
    });
  }

  get answers() {
    return [...this.list.querySelectorAll("input")].map((input) => input.value);
  }

  say(text) {
    this.alert.textContent = text;
    this.alert.hidden = text === "";
    this.field.classList.toggle("bad", text !== "");
  }

  addTyped() {
    if (this.box.value.trim() !== "" && this.add(this.box.value)) this.box.value = "";
  }

  add(typed) {
    const text = typed.replace(/\s+/g, " ").trim();
    if (normalized(text) === "") return this.say("An answer needs a word."), false;
    if (this.answers.map(normalized).includes(normalized(text))) return this.say("This answer is there already."), false;
    const item = made("li", this.list, {});
    made("bdi", item, { textContent: text });
    made("input", item, { type: "hidden", value: text });
    const up = made("button", item, { type: "button", className: "up", textContent: "←", title: "More natural" });
    const remove = made("button", item, { type: "button", className: "remove", textContent: "×", title: "Remove" });
    up.setAttribute("aria-label", "More natural: " + text);
    remove.setAttribute("aria-label", "Remove: " + text);
    up.addEventListener("click", () => { item.previousElementSibling?.before(item); this.number(); });
    remove.addEventListener("click", () => { item.remove(); this.number(); });
    this.number();
    this.say("");
    return true;
  }

  number() {
    this.list.querySelectorAll("input").forEach((input, index) => { input.name = "answer-" + this.place + "-" + index; });
    this.changed();
  }

  changed() {}

  get isComplete() {
    this.addTyped();
    if (this.box.value.trim() !== "") return false;
    this.say(this.answers.length >= LEAST ? "" : "Give at least " + LEAST + " answers.");
    return this.answers.length >= LEAST;
  }
}
