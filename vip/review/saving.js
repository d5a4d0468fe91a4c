"use strict";
// What the pages of files share: requests with the token, actions that wait until they are saved, undo, and the name of the reviewer.
// Needs in the page: #saved, #undo, #redo, #who, and the dialog #name-box with #name.
const byId = (id) => document.getElementById(id);
const newUid = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (n) => n.toString(16).padStart(2, "0")).join("");

class Refused extends Error {}

class Saving {
  // done: called when all is saved. stale: called with an action and the current value, where somebody else was faster.
  constructor({ done, stale = () => {} }) {
    Object.assign(this, { done, stale, reviewer: "", pending: [], isSending: false });
    this.token = new URLSearchParams(location.search).get("token") || "";
  }

  async ask(path, body) {
    const options = { headers: { "x-review-token": this.token } };
    if (body !== undefined) Object.assign(options, { method: "POST", body: JSON.stringify(body) }).headers["content-type"] = "application/json";
    const answer = await fetch(path, options);
    if (answer.status >= 500) throw new Error((await answer.text()).trim());
    if (!answer.ok) throw new Refused((await answer.text()).trim() || "Error " + answer.status);
    return answer.json();
  }

  status(text, isBad = false) {
    byId("saved").textContent = text;
    byId("saved").classList.toggle("bad", isBad);
  }

  save(item, field, after, before = null) {
    this.pending.push({ uid: newUid(), item, field, before, after });
    this.status("Saving…");
    return this.send();
  }

  async send() {
    if (this.isSending) return this.sent;
    this.isSending = true;
    this.sent = this.sendAll().finally(() => { this.isSending = false; });
    await this.sent;
    await this.done();
  }

  async sendAll() {
    while (this.pending.length) {
      const action = this.pending[0];
      try {
        const answer = await this.ask("api/actions", { reviewer: this.reviewer, actions: [action] });
        this.showUndo(answer);
        this.pending.shift();
        if (!answer.actions[0].saved) this.stale(action, answer.actions[0].current);
        else if (!this.pending.length) this.status("Saved " + new Date().toLocaleTimeString());
      } catch (error) {
        if (!(error instanceof Refused)) {
          this.status("Not saved (" + (error.message || "no answer") + "). Trying again…", true);
          await new Promise((wait) => setTimeout(wait, 1500));
          continue;
        }
        this.pending.shift();
        this.status("Not saved: " + error.message, true);
      }
    }
  }

  // Return what was taken back; null where the server refused it.
  async takeBack(path) {
    await this.send();
    try {
      const answer = await this.ask(path, { reviewer: this.reviewer, uid: newUid() });
      this.status(path === "api/undo" ? "Undone" : "Redone");
      return answer;
    } catch (error) { this.status(error.message, true); return null; }
  }

  showUndo(counts) {
    const had = document.activeElement;
    byId("undo").disabled = !counts.can_undo;
    byId("redo").disabled = !counts.can_redo;
    if (had.disabled) byId(had.id === "undo" ? "redo" : "undo").focus();  // a button that is disabled loses the focus
  }

  // Ask who the reviewer is, once; begin is called with each name.
  askName(begin) {
    const WHO = "vip-review-name", box = byId("name-box");
    const start = (name) => {
      this.reviewer = name.trim();
      byId("who").textContent = this.reviewer;
      try { localStorage.setItem(WHO, this.reviewer); } catch { /* a private window keeps nothing */ }
      begin();
    };
    byId("who").addEventListener("click", () => box.showModal());
    box.addEventListener("close", () => { if (byId("name").value.trim()) start(byId("name").value); else box.showModal(); });
    let known = "";
    try { known = localStorage.getItem(WHO) ?? ""; } catch { /* a private window keeps nothing */ }
    if (known) { byId("name").value = known; start(known); } else box.showModal();
  }
}
