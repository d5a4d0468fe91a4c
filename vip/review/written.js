// Samples that are answered in words: what is shown comes from the server as text and is put in place as text.
"use strict";
(() => {
  const TYPED_MS = 1000;
  let one = null, hasShown = false, refreshes = 0;
  const timers = new Map();  // field -> timer of what is being typed
  const saving = new Saving({ done: refresh });
  const element = (name, parent, values = {}) => parent.appendChild(Object.assign(document.createElement(name), values));
  const named = (name) => { const text = name.replaceAll("_", " "); return text[0].toUpperCase() + text.slice(1); };
  const clock = (s) => s === null ? "" : " at " + Math.floor(s / 60) + ":" + (s % 60).toFixed(1).padStart(4, "0");

  // ---------------------------------------------------------------- the sample
  function show() {
    byId("where").textContent = (one.number + 1) + " of " + one.samples;
    byId("kind").textContent = one.video;
    byId("asked").textContent = one.question || "Describe the missing keyframes";
    byId("sentences").replaceChildren();
    for (const text of one.said) element("li", byId("sentences"), { textContent: text, dir: "auto" });
    byId("comments").value = one.comment ?? "";
    byId("previous").disabled = one.number === 0;
    showClip();
    byId("parts").replaceChildren();
    one.parts.forEach(showPart);
    byId("question").hidden = false;
    byId("parts").querySelectorAll("textarea").forEach(fit);
    hint("");
  }
  function showClip() {
    byId("clip").replaceChildren();
    if (!one.has_video) return;
    const part = one.start_s === null ? "" : "#t=" + one.start_s + (one.end_s === null ? "" : "," + one.end_s);
    const video = element("video", byId("clip"), { className: "clip", controls: true, preload: "metadata" });
    video.src = "video/" + one.number + "?" + new URLSearchParams({ token: saving.token }) + part;
    video.setAttribute("aria-label", "Video of the question");
  }
  function showPart(part) {
    const isAsked = part.fields.length > 0, row = element("li", byId("parts"), { className: isAsked ? "asked" : "" });
    element("h3", row, { textContent: part.title + (isAsked && part.title !== "Your answer" ? " is missing: what does it show?" : clock(part.time_s)) });
    if (part.picture !== null) {
      element("img", row, { src: "picture/" + one.number + "/" + part.picture + "?" + new URLSearchParams({ token: saving.token }), alt: part.title });
    }
    const list = element("dl", row);
    for (const [name, text] of Object.entries(part.texts)) { element("dt", list, { textContent: named(name) }); element("dd", list, { textContent: text, dir: "auto" }); }
    for (const { field, name, value } of part.fields) {
      element("label", row, { htmlFor: "text-" + field, textContent: name === "objects" ? "Objects, one a line" : named(name) });
      const text = element("textarea", row, { id: "text-" + field, rows: 1, maxLength: 5000, value, dir: "auto" });
      text.setAttribute("aria-label", part.title + ", " + named(name).toLowerCase());
      text.addEventListener("input", () => { fit(text); saving.status("Not saved yet…"); clearTimeout(timers.get(field)); timers.set(field, setTimeout(() => commit(field), TYPED_MS)); });
      text.addEventListener("blur", () => commit(field));
    }
  }
  function fit(text) { text.style.height = "auto"; text.style.height = text.scrollHeight + 2 + "px"; }
  function hint(text) { byId("hint").textContent = text; byId("hint").hidden = text === ""; }
  const fields = () => one.parts.flatMap((part) => part.fields);

  // ---------------------------------------------------------------- saving
  function commit(field) {
    clearTimeout(timers.get(field));
    if (!timers.delete(field) || !one) return;
    if (field === "comment") { one.comment = byId("comments").value; saving.save(one.id, "comment", one.comment); return; }
    const kept = fields().find((each) => each.field === field), value = byId("text-" + field).value;
    if (value.trim() === kept.value) { saving.status(""); return; }
    kept.value = value.trim();
    saving.save(one.id, field, value);
  }
  function flush() { [...timers.keys()].forEach(commit); }

  // ---------------------------------------------------------------- from one to the next
  async function load(number = "") {
    try {
      one = await saving.ask("api/sample?" + new URLSearchParams({ reviewer: saving.reviewer, number }));
    } catch (error) { saving.status(error.message, true); return; }
    byId("instructions").open = one.progress.done === 0 && !hasShown;
    hasShown = true;
    show();
    showCounts(one);
  }
  function showCounts(counts) {
    byId("progress").max = counts.progress.total || 1;
    byId("progress").value = counts.progress.done;
    byId("progress-text").textContent = counts.progress.done + " of " + counts.progress.total;
    saving.showUndo(counts);
  }
  async function refresh() {
    if (!one) return;
    const number = one.number, turn = ++refreshes;
    try {
      const now = await saving.ask("api/sample?" + new URLSearchParams({ reviewer: saving.reviewer, number }));
      if (number !== one.number || turn !== refreshes) return;  // answers may overtake each other
      one.next_open = now.next_open;
      showCounts(now);
    } catch { /* what is saved is saved; the numbers come with the next sample */ }
  }
  async function next() {
    flush();
    const empty = fields().find(({ field }) => byId("text-" + field).value.trim() === "");
    if (empty) { hint("Write something in every text, or “not determined”."); byId("text-" + empty.field).focus(); return; }
    await saving.send();
    await refresh();
    if (one.next_open === null) { hint("All samples are answered. Thank you! You can close the page."); return; }
    await load(one.next_open);
    scrollTo(0, 0);
    byId("asked").focus();
  }
  function previous() {
    if (one.number === 0) return;
    flush();
    load(one.number - 1).then(() => byId("asked").focus());
  }
  async function takeBack(path) {
    flush();
    const answer = await saving.takeBack(path);
    if (answer) await load(answer.number ?? one.number);
  }

  // ---------------------------------------------------------------- what people press
  byId("comments").addEventListener("input", () => { clearTimeout(timers.get("comment")); timers.set("comment", setTimeout(() => commit("comment"), TYPED_MS)); });
  byId("comments").addEventListener("blur", () => commit("comment"));
  byId("form").addEventListener("submit", (event) => { event.preventDefault(); next(); });
  byId("previous").addEventListener("click", previous);
  byId("undo").addEventListener("click", () => takeBack("api/undo"));
  byId("redo").addEventListener("click", () => takeBack("api/redo"));
  addEventListener("beforeunload", (event) => { flush(); if (saving.pending.length) event.preventDefault(); });
  addEventListener("keydown", (event) => {
    if (one && !byId("name-box").open && event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); next(); }
  });
  saving.askName(() => load());
})();
