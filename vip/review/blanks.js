// FIBER's page: what is shown comes from the server as text and is put in place as text; nothing here makes HTML of it.
(() => {
  const TYPED_MS = 1000;
  let hit = null, questions = [], timer = 0, progressAsked = 0;
  const saving = new Saving({ done: showProgress });
  addEventListener("beforeunload", (event) => { saveComment(); if (saving.pending.length) event.preventDefault(); });

  // ---------------------------------------------------------------- the blanks
  class SavedQuestion extends Question {
    constructor(field, item) {
      super(field);
      this.item = item;
      item.answers.forEach((answer) => this.add(answer));
      this.isShown = true;
    }

    changed() {
      if (!this.isShown) return;
      this.item.answers = this.answers;
      saving.save(this.item.id, "answers", this.answers.join("\n"));
    }
  }
  function show(item) {
    const field = made("fieldset", byId("form"), { className: "question" });
    field.dataset.place = item.place;
    made("legend", field, { textContent: "Blank " + item.place });
    if (item.has_video) {
      const clip = made("video", field, { className: "clip", controls: true, preload: "metadata" });
      const part = item.start_s === null ? "" : "#t=" + item.start_s + "," + item.end_s;
      clip.src = "video/" + item.number + "?" + new URLSearchParams({ token: saving.token }) + part;
      clip.setAttribute("aria-label", "Video of blank " + item.place);
    } else {
      made("p", field, { className: "clip missing", textContent: "The clip " + item.video_id + " is not at hand. Name its folder with --videos." });
    }
    made("p", field, { className: "sentence", dir: "auto", textContent: item.text });
    made("ol", field, { className: "answers" }).setAttribute("aria-label", "Your answers, the most natural first");
    const alert = made("p", field, { className: "alert", hidden: true });
    alert.setAttribute("role", "alert");
    made("button", made("p", field, {}), { type: "button", className: "gone", textContent: "The video is unavailable" });
    return new SavedQuestion(field, item);
  }
  async function load(number = "") {
    try {
      hit = await saving.ask("api/hit?" + new URLSearchParams({ reviewer: saving.reviewer, number }));
    } catch (error) { saving.status(error.message, true); return; }
    byId("form").replaceChildren();
    questions = hit.items.map(show);
    byId("form").hidden = false;
    byId("comments").value = hit.items[0].comment ?? "";
    byId("where").textContent = (hit.number + 1) + " of " + hit.hits;
    byId("previous").disabled = hit.number === 0;
    byId("next").textContent = hit.number + 1 < hit.hits ? "Next →" : "Done";
    byId("instructions").open = hit.number === 0 && hit.done === 0;
    hint("");
    saving.showUndo(hit);
    showProgress(hit);
  }
  async function showProgress(known = null) {
    let counts = known;
    const asked = ++progressAsked;
    try { counts = counts ?? await saving.ask("api/hit?" + new URLSearchParams({ reviewer: saving.reviewer, number: hit.number })); } catch { return; }
    if (asked !== progressAsked) return;  // answers may overtake each other
    byId("progress").max = counts.blanks;
    byId("progress").value = counts.done;
    byId("progress-text").textContent = counts.done + " of " + counts.blanks;
  }
  function hint(text) {
    byId("hint").textContent = text;
    byId("hint").hidden = text === "";
  }

  // ---------------------------------------------------------------- turning
  async function next() {
    saveComment();
    const open = questions.filter((question) => !question.isComplete);
    if (open.length) { open[0].box.focus(); return; }
    await saving.send();
    if (hit.number + 1 < hit.hits) await load(hit.number + 1);
    else hint("All blanks of this file are filled. Thank you! You can close the page.");
    scrollTo(0, 0);
  }
  async function takeBack(path) {
    saveComment();
    if (await saving.takeBack(path)) await load(hit.number);
  }
  function saveComment() {
    clearTimeout(timer);
    if (!hit || (hit.items[0].comment ?? "") === byId("comments").value) return;
    hit.items[0].comment = byId("comments").value;
    saving.save(hit.items[0].id, "comment", byId("comments").value);
  }
  byId("comments").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(saveComment, TYPED_MS); });
  byId("form").addEventListener("submit", (event) => event.preventDefault());
  byId("next").addEventListener("click", next);
  byId("previous").addEventListener("click", () => { saveComment(); load(hit.number - 1); });
  byId("undo").addEventListener("click", () => takeBack("api/undo"));
  byId("redo").addEventListener("click", () => takeBack("api/redo"));
  addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); next(); } });

  saving.askName(() => load());
})();
