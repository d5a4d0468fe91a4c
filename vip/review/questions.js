// Questions with options: what is shown comes from the server as text and is put in place as text; nothing here makes HTML of it.
(() => {
  const LETTERS = "ABCDEFGHIJKLMNOPQRST", MARKS = [null, "right too", "bad"], TYPED_MS = 1000;
  const isCheck = document.body.dataset.way === "check";
  let one = null, stop = null, timer = 0, hasShown = false, refreshes = 0;
  const saving = new Saving({ done: refresh, stale: () => { load(one.number); saving.status("Somebody else has changed this option. Look at it, and write yours again.", true); } });
  const element = (name, parent, values = {}) => parent.appendChild(Object.assign(document.createElement(name), values));
  const seconds = (time) => { const whole = Math.floor(time); return Math.floor(whole / 60) + ":" + String(whole % 60).padStart(2, "0") + (time % 1 ? "." + Math.round((time % 1) * 10) % 10 : ""); };

  // ---------------------------------------------------------------- the question
  function show() {
    byId("where").textContent = (one.number + 1) + " of " + one.questions;
    byId("asked").textContent = one.text;
    byId("kind").textContent = one.kind;
    byId("comments").value = one.comment ?? "";
    byId("previous").disabled = one.number === 0;
    byId("next").textContent = isCheck ? "Checked, next →" : "Next →";
    showClip();
    showSaid();
    byId("options").replaceChildren();
    one.options.forEach(isCheck ? showMarked : showChoice);
    if (byId("gone")) byId("gone").setAttribute("aria-pressed", String(one.choice === "unavailable"));
    byId("question").hidden = false;
    hint("");
  }
  function showClip() {
    const place = byId("clip");
    place.replaceChildren();
    stop = null;
    byId("interval").hidden = !one.has_video || one.start_s === null;
    if (!one.has_video) {
      element("p", place, { className: "clip missing", textContent: "The video " + one.video_id + " is not at hand. Name its folder with --videos." });
      return;
    }
    const video = element("video", place, { className: "clip", controls: true, preload: "metadata" });
    const part = one.start_s === null ? "" : "#t=" + one.start_s + "," + one.end_s;
    video.src = "video/" + one.number + "?" + new URLSearchParams({ token: saving.token }) + part;
    video.setAttribute("aria-label", "Video of the question");
    video.addEventListener("timeupdate", () => { if (stop !== null && video.currentTime >= stop) { stop = null; video.pause(); } });
    byId("times").textContent = one.start_s === null ? "" : seconds(one.start_s) + " – " + seconds(one.end_s);
  }
  function play() {
    const video = byId("clip").querySelector("video");
    if (!video) return;
    if (!video.paused) { video.pause(); return; }
    if (one.start_s !== null) { video.currentTime = one.start_s; stop = one.end_s; }
    video.play().catch(() => hint("The browser cannot play this video."));
  }
  function showSaid() {
    byId("said").hidden = one.said.length === 0;
    byId("sentences").replaceChildren();
    for (const line of one.said) {
      const row = element("li", byId("sentences"));
      element("span", row, { className: "time", textContent: seconds(line.start_s) });
      element("bdi", row, { textContent: line.text });
    }
  }
  function showChoice(text, place) {
    const label = element("label", element("li", byId("options")), { className: "choice" });
    const radio = element("input", label, { type: "radio", name: "choice", value: String(place), checked: one.choice === String(place) });
    element("b", label, { textContent: LETTERS[place] });
    element("bdi", label, { textContent: text });
    radio.addEventListener("change", () => choose(radio.value));
  }
  function choose(value) {
    one.choice = value;
    byId("options").querySelectorAll("input").forEach((radio) => { radio.checked = radio.value === value; });
    byId("gone").setAttribute("aria-pressed", String(value === "unavailable"));
    hint("");
    saving.save(one.id, "choice", value);
  }
  function showMarked(text, place) {
    const row = element("li", byId("options"), { className: "marked" });
    const isRight = one.answer === place;
    row.classList.toggle("right", isRight);
    element("b", row, { textContent: LETTERS[place] });
    const box = element("input", row, { type: "text", value: text, maxLength: 500, autocomplete: "off" });
    box.setAttribute("aria-label", "Option " + LETTERS[place] + (isRight ? ", the right one" : ""));
    box.addEventListener("change", () => write(place, box));
    const marks = element("span", row, { className: "marks" });
    if (isRight) element("span", marks, { className: "is-right", textContent: "Right" });
    for (const mark of isRight ? ["bad"] : ["right too", "bad"]) {
      const words = isRight ? "Wrong" : mark === "bad" ? "Bad" : "Also right";
      const button = element("button", marks, { type: "button", textContent: words });
      button.dataset.mark = mark;
      button.setAttribute("aria-label", words + ": option " + LETTERS[place]);
      button.setAttribute("aria-pressed", String(one.marks[place] === mark));
      button.addEventListener("click", () => setMark(place, one.marks[place] === mark ? null : mark));
    }
  }
  function setMark(place, mark) {
    one.marks[place] = mark;
    byId("options").children[place].querySelectorAll("[data-mark]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.mark === mark)));
    saving.save(one.id, "mark." + place, mark);
  }
  function write(place, box) {
    const text = box.value.replace(/\s+/g, " ").trim();
    if (text === "") { box.value = one.options[place]; hint("An option cannot be empty."); return; }
    if (text === one.options[place]) return;
    saving.save(one.id, "option." + place, text, one.before[place]);
    one.options[place] = one.before[place] = text;
    if (one.marks[place]) setMark(place, null);  // it was said of the text before
  }
  function hint(text) {
    byId("hint").textContent = text;
    byId("hint").hidden = text === "";
  }

  // ---------------------------------------------------------------- from one to the next
  async function load(number = "") {
    try {
      one = await saving.ask("api/question?" + new URLSearchParams({ reviewer: saving.reviewer, number }));
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
      const now = await saving.ask("api/question?" + new URLSearchParams({ reviewer: saving.reviewer, number }));
      if (number !== one.number || turn !== refreshes) return;  // answers may overtake each other
      one.next_open = now.next_open;
      one.is_done = now.is_done;
      showCounts(now);
    } catch { /* what is saved is saved; the numbers come with the next question */ }
  }
  async function next() {
    saveTyped();
    if (!isCheck && one.choice === null) { hint("Choose an answer, or say that the video is unavailable."); return; }
    if (isCheck) saving.save(one.id, "checked", "yes");
    await saving.send();
    await refresh();
    if (one.next_open === null) { hint("All questions are done. Thank you! You can close the page."); return; }
    await load(one.next_open);
    scrollTo(0, 0);
    byId("asked").focus();
  }
  function previous() {
    if (one.number === 0) return;
    saveTyped();
    load(one.number - 1);
  }
  async function takeBack(path) {
    saveTyped();
    const answer = await saving.takeBack(path);
    if (answer) await load(answer.number ?? one.number);
  }
  function saveTyped() {
    document.activeElement?.blur?.();  // the text of an option is saved when it is left
    saveComment();
  }
  function saveComment() {
    clearTimeout(timer);
    if (!one || (one.comment ?? "") === byId("comments").value) return;
    one.comment = byId("comments").value;
    saving.save(one.id, "comment", one.comment);
  }

  // ---------------------------------------------------------------- what people press
  byId("comments").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(saveComment, TYPED_MS); });
  byId("form").addEventListener("submit", (event) => { event.preventDefault(); next(); });
  byId("previous").addEventListener("click", previous);
  byId("play").addEventListener("click", play);
  byId("gone")?.addEventListener("click", () => choose("unavailable"));
  byId("undo").addEventListener("click", () => takeBack("api/undo"));
  byId("redo").addEventListener("click", () => takeBack("api/redo"));
  addEventListener("beforeunload", (event) => { saveTyped(); if (saving.pending.length) event.preventDefault(); });
  addEventListener("keydown", (event) => {
    if (!one || byId("name-box").open || event.altKey) return;
    const isText = event.target.matches?.("textarea, input[type=text]");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); next(); return; }
    if (isText && event.key === "Enter" && event.target.type === "text") { event.preventDefault(); event.target.blur(); return; }
    if (isText && event.key === "Escape") event.target.blur();
    if (isText || event.ctrlKey || event.metaKey) return;
    const place = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
    const keys = { p: play, z: () => takeBack("api/undo"), y: () => takeBack("api/redo"), j: next, k: previous, u: () => byId("gone")?.click(), w: () => byId("who").click() };
    if (event.key === "c") { event.preventDefault(); byId("comments").focus(); }
    if (place >= 0 && place < one.options.length) event.preventDefault();
    if (place >= 0 && place < one.options.length && !isCheck) choose(String(place));
    else if (place >= 0 && place < one.options.length) turnMark(place);
    else if (event.key === "Enter" && !event.target.matches?.("button, summary, a")) { event.preventDefault(); next(); }
    else keys[event.key]?.();
  });
  function turnMark(place) {
    const marks = one.answer === place ? [null, "bad"] : MARKS;
    setMark(place, marks[(marks.indexOf(one.marks[place]) + 1) % marks.length]);
  }
  saving.askName(() => load());
})();
