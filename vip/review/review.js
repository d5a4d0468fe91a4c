// The review page. What is shown comes from the server as text and is put in place as text; nothing here makes HTML of it.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token") || "";
  const TEXTS = [...document.querySelectorAll(".field")].map((one) => one.dataset.field).filter((name) => name !== "comment");
  const NAMES = Object.fromEntries(TEXTS.map((name) => [name, document.querySelector(`label[for="text-${name}"]`).textContent]));
  const PENDING = "vip-review-pending", WHO = "vip-review-name", TYPED_MS = 1500, AHEAD = 2, RETRY_MS = 1500, HERE_MS = 4000;
  let reviewer = "", session = null, queue = [], place = 0, item = null, undoable = {}, sending = false, pending = [], progressAsked = 0;
  const items = new Map();  // number -> promise of an item
  const timers = new Map();  // field -> timer of what is being typed
  const uid = () => crypto.randomUUID ? crypto.randomUUID() : Array.from(crypto.getRandomValues(new Uint8Array(16)), (n) => n.toString(16)).join("");
  const make = (name, text, properties = {}) => Object.assign(document.createElement(name), { textContent: text ?? "" }, properties);
  const address = (path, given = {}) => `${path}?${new URLSearchParams({ token, ...given })}`;

  // ---------------------------------------------------------------- the server
  class Refused extends Error {}
  async function ask(path, body) {
    const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    options.headers = { ...options.headers, "x-review-token": token };
    const answer = await fetch(path, options);
    if (answer.status >= 500) throw new Error((await answer.text()).trim());
    if (!answer.ok) throw new Refused((await answer.text()).trim() || `Error ${answer.status}`);
    return answer.json();
  }
  const filters = () => ({ reviewer, stage: at("stage").value, view: at("view").value, video: at("video").value, word: at("word").value });
  const parameters = () => new URLSearchParams(filters()).toString();

  function saidOf(field) {  // what was saved, in words
    const [, final, wrong, name] = /^(final:)?(wrong:)?(.*)$/.exec(field);
    return `${final ? "what was settled about " : wrong ? "the mark of " : ""}${(NAMES[name] ?? name.replace(/\..*/, "")).toLowerCase()}`;
  }
  function status(text, bad = false) {
    at("saved").textContent = text;
    at("saved").classList.toggle("bad", bad);
  }

  // ---------------------------------------------------------------- saving
  function keep() {
    try { localStorage.setItem(PENDING, JSON.stringify(pending)); } catch { /* a private window keeps nothing */ }
  }
  function save(field, after, before = null) {
    pending.push({ reviewer, uid: uid(), item: item.id, number: item.number, field, before, after });
    keep();
    status("Saving…");
    return send();
  }
  async function send() {
    if (sending) return;
    sending = true;
    try {
      while (pending.length) {
        const first = pending[0];
        const { reviewer: who, number, ...action } = first;
        let answer;
        try {
          answer = await ask("api/actions", { reviewer: who, actions: [action] });
        } catch (error) {
          if (error instanceof Refused) {
            pending.shift(); keep();
            status(`Not saved: ${error.message}`, true);
            refused(first, error.message);
            continue;
          }
          status(`Not saved (${error.message || "no answer"}). ${pending.length} waiting, trying again…`, true);
          await new Promise((done) => setTimeout(done, RETRY_MS));
          continue;
        }
        pending.shift(); keep();
        undoable = answer; showUndo();
        settle(first, answer.actions[0]);
      }
    } finally { sending = false; }
    refreshProgress();
  }
  function refused(action, why) {  // what was typed stays in the field, with the reason
    if (!item || item.number !== action.number || !TEXTS.includes(action.field)) return;
    if (action.before !== null) item.texts[action.field] = action.before;
    items.delete(action.number);
    at(`note-${action.field}`).textContent = `Not saved. ${why}`;
  }
  function settle(action, result) {
    const is_text = TEXTS.includes(action.field);
    if (result.saved) {
      if (is_text && item && item.number === action.number) {
        item.texts[action.field] = result.value ?? "";
        item.changed_by[action.field] = action.reviewer;
        const later = pending.find((one) => one.item === action.item && one.field === action.field);
        if (later) later.before = result.value;
        showField(action.field);
        if (action.field === "dense_caption") showRewrite();
      }
      items.delete(action.number);
      const saved = `Saved ${saidOf(action.field)} ${new Date(result.created_utc).toLocaleTimeString()}`;
      status(pending.length ? "Saving…" : timers.size ? "Not saved yet…" : saved);
    } else {
      status("Not saved: somebody else has changed this", true);
      if (item && item.number === action.number && is_text) showClash(action.field, action.after, result.current);
    }
  }
  addEventListener("beforeunload", (event) => { flush(); if (pending.length) event.preventDefault(); });

  // ---------------------------------------------------------------- the queue and the items
  async function load(keepNumber = null) {
    const wanted = keepNumber ?? (item && item.number);
    try {
      const number = ++progressAsked;
      const answer = await ask(`api/queue?${parameters()}`);
      queue = answer.numbers; undoable = answer; showUndo();
      if (number === progressAsked) showProgress(answer.progress);  // answers may overtake each other
    } catch (error) { status(error.message, true); return; }
    items.clear();
    place = Math.max(0, queue.indexOf(wanted));
    await show();
  }
  async function refreshProgress() {
    const number = ++progressAsked;
    try {
      const { progress } = await ask(`api/queue?${new URLSearchParams({ ...filters(), word: "", video: "", view: "all" })}`);
      if (number === progressAsked) showProgress(progress);
    } catch { /* the next action says what is wrong */ }
  }
  function get(number) {
    if (!items.has(number)) {
      const found = ask(`api/items/${number}?${parameters()}`);
      found.catch(() => items.delete(number));
      items.set(number, found);
      new Image().src = address(`picture/${number}`);
    }
    return items.get(number);
  }
  async function show() {
    at("count").textContent = queue.length ? `${place + 1} of ${queue.length}` : "";
    at("nothing").hidden = queue.length > 0;
    at("item").hidden = queue.length === 0;
    if (!queue.length) { item = null; return; }
    const number = queue[place];
    let found;
    try { found = await get(number); } catch (error) { status(error.message, true); return; }
    if (queue[place] !== number) return;  // gone on meanwhile
    item = structuredClone(found);
    render();
    for (let step = 1; step <= AHEAD; step++) if (place + step < queue.length) get(queue[place + step]);
    const old = [...items.keys()].filter((one) => Math.abs(queue.indexOf(one) - place) > 10);
    old.forEach((one) => items.delete(one));
  }
  function move(step) {
    flush();
    if (!queue.length) return;
    const next = Math.min(queue.length - 1, Math.max(0, place + step));
    if (next === place) { status(step > 0 ? "This is the last one" : "This is the first one"); return; }
    place = next;
    show().then(toItem);
  }
  function goTo(number) {
    flush();
    const found = queue.indexOf(number);
    if (found < 0) { queue.splice(place + 1, 0, number); place += 1; } else place = found;
    return show();
  }

  // ---------------------------------------------------------------- showing
  const toItem = () => at("item").focus({ preventScroll: true });  // a screen reader then reads which one it is
  const clock = (s) => s === null ? "" : `${Math.floor(s / 60)}:${(s % 60).toFixed(1).padStart(4, "0")}`;
  // what a stranger's record names, with no letter that turns or moves the line
  const shown = (text) => String(text).replace(/(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}]/gu, "\ufffd");
  function render() {
    const picture = at("picture");
    if (item.has_picture) picture.src = address(`picture/${item.number}`); else picture.removeAttribute("src");
    picture.width = item.width_px; picture.height = item.height_px;
    const name = shown(`${item.video}${item.time_s === null ? "" : ` at ${clock(item.time_s)}`}`);
    picture.alt = `Keyframe of ${name}`;
    at("item").setAttribute("aria-label", `Keyframe ${place + 1} of ${queue.length}: ${name}`);
    at("where").textContent = name;
    at("by").textContent = shown(`Described by ${item.engine} · ${item.id}`);
    showBoxes(); showVideo(); showNeighbours(); showJudgement(); showOthers();
    for (const field of TEXTS) { clearClash(field); box(field).hidden = !(field in item.texts); if (field in item.texts) showField(field); }
    if (at("rich")) at("rich").hidden = !TEXTS.some((field) => box(field).closest("#rich") && field in item.texts);
    showRewrite(); showHere([]); sayHere();
    const comment = at("text-comment");
    comment.value = item.own.comment ?? ""; fit(comment);
  }
  function showBoxes() {
    const boxes = at("boxes");
    boxes.replaceChildren();
    const objects = item.detections;
    for (const one of objects) {
      const [left, top, right, bottom] = one.box_xyxy.map((edge) => Math.min(1, Math.max(0, edge)) * 100);
      const shape = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [key, value] of Object.entries({ x: left, y: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) })) shape.setAttribute(key, `${value}%`);
      const label = document.createElementNS("http://www.w3.org/2000/svg", "text");
      label.setAttribute("x", `${left}%`); label.setAttribute("y", `${top}%`); label.setAttribute("dx", 6); label.setAttribute("dy", 16);
      label.textContent = `${one.label} ${one.score.toFixed(2)}`;
      boxes.append(shape, label);
    }
    at("found").textContent = objects.length ? `Detected: ${objects.map((one) => `${one.label} ${one.score.toFixed(2)}`).join(", ")}` : "Nothing was detected.";
    placeBoxes();
  }
  function placeBoxes() {  // over the picture, whatever room it has
    const picture = at("picture"), boxes = at("boxes");
    boxes.style.left = `${picture.offsetLeft}px`; boxes.style.top = `${picture.offsetTop}px`;
    boxes.style.width = `${picture.offsetWidth}px`; boxes.style.height = `${picture.offsetHeight}px`;
  }
  new ResizeObserver(placeBoxes).observe(at("picture"));
  function showVideo() {
    const player = at("player");
    player.pause(); player.removeAttribute("src"); player.hidden = true;
    at("play").hidden = !item.has_video || item.time_s === null;
  }
  function showNeighbours() {
    const all = [...item.neighbours, { number: item.number, time_s: item.time_s }].sort((a, b) => a.number - b.number);
    at("neighbours").replaceChildren(...all.map((one) => {
      const button = make("button", "", { type: "button", className: one.number === item.number ? "now" : "" });
      button.append(Object.assign(new Image(), { src: address(`picture/${one.number}`), alt: `Keyframe ${one.number + 1}` }), clock(one.time_s));
      if (one.number === item.number) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => goTo(one.number).then(toItem));
      return button;
    }));
  }
  function showJudgement() {
    for (const button of document.querySelectorAll("[data-verdict]")) button.setAttribute("aria-pressed", String(item.own.verdict === button.dataset.verdict));
    for (const field of TEXTS) box(field).querySelector(".wrong").setAttribute("aria-pressed", String(item.own.wrong.includes(field)));
  }
  const box = (field) => document.querySelector(`.field[data-field="${field}"]`);
  function showField(field) {
    const text = at(`text-${field}`), value = item.texts[field] ?? "";
    if (document.activeElement !== text || text.value.trim() === value.trim()) { if (text.value !== value && !timers.has(field)) text.value = value; }
    text.readOnly = at("stage").value === "1";
    if (text.matches("select")) text.disabled = text.readOnly; else fit(text);
    const doubts = item.checks.filter((one) => one.field === field && one.verdict === "unsupported");
    box(field).classList.toggle("flagged", item.flagged.includes(field));
    const notes = doubts.map((one) => `--verify found no support for “${one.claim}”${one.after === null || one.after === one.claim ? "" : one.after === "" ? "; it was removed" : `; it was changed to “${one.after}”`}.`);
    if (item.changed_by[field] && value !== item.original[field]) notes.push(`Changed by ${item.changed_by[field]}. The engine wrote: ${item.original[field].replaceAll("\n", ", ") || "nothing"}`);
    at(`note-${field}`).textContent = shown(notes.join("\n"));
  }
  // ---------------------------------------------------------------- others at the same item
  async function sayHere() {
    if (!item || !reviewer || document.hidden) return;
    const number = item.number, typing = timers.size > 0 || document.activeElement?.matches?.(".field textarea, .field select") === true;
    let found;
    try { found = await ask(`api/here/${number}`, { reviewer, is_editing: typing && !document.activeElement?.readOnly }); }
    catch { return; }  // the next action says what is wrong
    if (!item || item.number !== number) return;
    showHere(found.others);
    for (const field of Object.keys(found.texts)) {
      const text = at(`text-${field}`), waits = timers.has(field) || pending.some((one) => one.number === number && one.field === field);
      if (found.texts[field] === item.texts[field] || waits || document.activeElement === text) continue;  // who types there is told when it is saved
      item.texts[field] = found.texts[field]; item.changed_by[field] = found.changed_by[field];
      text.value = found.texts[field]; showField(field); items.delete(number);
      if (field === "dense_caption") showRewrite();
    }
  }
  function showHere(others) {
    const text = others.map((one) => `${one.reviewer} ${one.is_editing ? "is editing this keyframe now" : "has this keyframe open too"}.`).join(" ");
    if (at("here").textContent !== text) at("here").textContent = text;
    at("here").hidden = !text;
  }
  setInterval(sayHere, HERE_MS);
  // ---------------------------------------------------------------- what an engine wrote again (stage 3)
  const MOST_COMPARED = 1500;  // words; longer texts are shown one after the other
  function changes(before, after) {  // [kind, words] of the shortest way from one text to the other
    const a = before.split(/(?<=\s)/), b = after.split(/(?<=\s)/);
    if (a.length > MOST_COMPARED || b.length > MOST_COMPARED) return [["del", before], ["ins", after]];
    const same = (i, j) => a[i].trim() === b[j].trim(), width = b.length + 1, best = new Uint16Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) best[i * width + j] = same(i, j) ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    const found = [];
    const add = (kind, word) => { if (found.length && found.at(-1)[0] === kind) found.at(-1)[1] += word; else found.push([kind, word]); };
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && same(i, j)) { add("span", b[j]); i += 1; j += 1; }
      else if (i < a.length && (j === b.length || best[(i + 1) * width + j] >= best[i * width + j + 1])) { add("del", a[i]); i += 1; }
      else { add("ins", b[j]); j += 1; }
    }
    return found;
  }
  function showRewrite() {
    const list = at("rewritten"), done = item.rewritten, now = item.texts.dense_caption;
    list.hidden = !done || !["3", "4"].includes(at("stage").value);
    if (list.hidden) { list.replaceChildren(); return; }
    const text = make("p", "", { className: "changes-of" });
    text.append(...changes(done.before, now).map(([kind, words]) => make(kind, words)));
    const moves = make("div", "", { className: "moves" }), parts = [make("p", `Written again by ${done.by} from the corrected fields${now === done.after ? "" : now === done.before ? ", and taken back" : ", and edited since"}:`), text, moves];
    if (at("stage").value === "3") {
      const accept = make("button", "Accept", { type: "button", className: "main", ariaKeyShortcuts: "1" });
      accept.setAttribute("aria-pressed", String(item.own.verdict === "good"));
      accept.addEventListener("click", () => judge("good"));
      moves.append(accept);
    }
    const put = (name, value, key) => {
      if (now.trim() === value.trim()) return;
      const button = make("button", name, { type: "button", ariaKeyShortcuts: key });
      button.addEventListener("click", () => {
        flush();
        const before = item.texts.dense_caption;
        item.texts.dense_caption = value; at("text-dense_caption").value = value;
        save("dense_caption", value, before); showField("dense_caption"); showRewrite();
        (list.querySelector("button") ?? at("text-dense_caption")).focus();
      });
      moves.append(button);
    };
    put("Put the old one back", done.before, "t"); put("Take the new one", done.after, "Shift+T");
    list.replaceChildren(...parts);
  }
  function fit(text) {
    text.style.height = "auto";
    text.style.height = `${text.scrollHeight + 2}px`;
  }
  function clearClash(field) { const clash = box(field).querySelector(".clash"); clash.hidden = true; clash.replaceChildren(); }
  function showClash(field, mine, theirs) {
    const clash = box(field).querySelector(".clash"), moves = make("div", "", { className: "moves" });
    const keepMine = make("button", "Keep mine", { type: "button", ariaKeyShortcuts: "q" }), takeTheirs = make("button", "Take theirs", { type: "button", ariaKeyShortcuts: "w" });
    keepMine.addEventListener("click", () => { clearClash(field); at(`text-${field}`).focus(); item.texts[field] = theirs ?? ""; at(`text-${field}`).value = mine; save(field, mine, theirs); });
    takeTheirs.addEventListener("click", () => { clearClash(field); at(`text-${field}`).focus(); item.texts[field] = theirs ?? ""; at(`text-${field}`).value = theirs ?? ""; showField(field); });
    moves.append(keepMine, takeTheirs);
    clash.replaceChildren(`Somebody else has changed this text meanwhile. It is now:\n${theirs ?? ""}\n\nYours is:\n${mine ?? ""}`, moves);
    clash.hidden = false;
    items.delete(item.number);
  }
  function showOthers() {
    const list = at("others");
    list.hidden = item.others === null || (!item.others.length && !item.disputes.length);
    if (list.hidden) { list.replaceChildren(); return; }
    const rows = item.others.map((one) => make("li", `${one.reviewer}: ${one.verdict ?? "no verdict"}${one.wrong.length ? `; wrong: ${one.wrong.map((name) => NAMES[name]).join(", ")}` : ""}${one.comment ? ` – ${one.comment}` : ""}`));
    const said = make("ul"); said.append(...rows);
    const open = item.disputes.find((name) => !item.final[name]);  // the keys settle this one
    list.replaceChildren(said, ...item.disputes.map((name) => {
      const row = make("div", name === "verdict" ? "Settle the verdict: " : `Settle whether ${NAMES[name.slice(6)]} is wrong: `, { className: "settle" });
      for (const [place, value] of (name === "verdict" ? ["good", "needs work", "unusable"] : ["wrong", "right"]).entries()) {
        const button = make("button", value, { type: "button", ariaKeyShortcuts: name === open ? String(4 + place) : null });
        button.setAttribute("aria-pressed", String(item.final[name] === value));
        button.dataset.settles = `${name}=${value}`;
        button.addEventListener("click", () => {
          save(`final:${name}`, value, item.final[name]); item.final[name] = value; showOthers();
          list.querySelector(`[data-settles="${name}=${value}"]`)?.focus();  // the list is new
        });
        row.append(button);
      }
      return row;
    }));
  }
  function showProgress(progress) {
    at("progress").max = Math.max(1, progress.total); at("progress").value = progress.done;
    at("progress-text").textContent = `${progress.done} of ${progress.total} · ${progress.good} good, ${progress["needs work"]} need work, ${progress.unusable} unusable`;
  }
  function showUndo() {
    const had = document.activeElement;
    at("undo").disabled = !undoable.can_undo; at("redo").disabled = !undoable.can_redo;
    if (had.disabled) (had.id === "undo" ? at("redo") : at("undo")).focus();  // a button that is disabled loses the focus
  }

  // ---------------------------------------------------------------- what people do
  function judge(verdict) {
    if (!item) return;
    const value = item.own.verdict === verdict ? null : verdict;
    save(item.verdict_field, value);
    item.own.verdict = value;
    showJudgement(); showRewrite();
    if (value && value !== "needs work" && at("go-on").checked && place + 1 < queue.length) move(1);
  }
  function mark(field) {
    if (!item) return;
    const was = item.own.wrong.includes(field);
    item.own.wrong = was ? item.own.wrong.filter((one) => one !== field) : [...item.own.wrong, field];
    save(`wrong:${field}`, was ? null : "wrong");
    showJudgement();
  }
  function typed(field) {
    if (at(`text-${field}`).matches("textarea")) fit(at(`text-${field}`));
    if (!item) return;
    clearTimeout(timers.get(field));
    timers.set(field, setTimeout(() => commit(field), TYPED_MS));
    status("Not saved yet…");
  }
  function commit(field) {
    clearTimeout(timers.get(field));
    if (!timers.delete(field) || !item) return;
    const value = at(`text-${field}`).value;
    if (field === "comment") {
      if (value.trim() !== (item.own.comment ?? "")) { item.own.comment = value.trim(); save("comment", value); } else status("");
    } else if (value.trim() !== (item.texts[field] ?? "").trim()) {
      const before = item.texts[field];
      item.texts[field] = value;
      const earlier = pending.some((one) => one.item === item.id && one.field === field);
      save(field, value, earlier ? null : before);
    } else status("");
  }
  function flush() { [...timers.keys()].forEach(commit); }
  async function takeBack(how) {
    flush();
    while (sending) await new Promise((done) => setTimeout(done, 20));
    try {
      const answer = await ask(`api/${how}`, { reviewer, uid: uid() });
      undoable = answer; showUndo();
      if (answer.action === null) { status(how === "undo" ? "Nothing to undo" : "Nothing to redo"); return; }
      if (!answer.action.saved) { status("Not undone: somebody else has changed it since", true); return; }
      items.clear();
      await goTo(answer.number);
      status(`${how === "undo" ? "Undone" : "Redone"}, and saved: ${saidOf(answer.action.field)}`);
      refreshProgress();
    } catch (error) { status(error.message, true); }
  }
  function play() {
    if (at("play").hidden) return;
    const player = at("player");
    if (player.hidden) {
      player.hidden = false;
      player.src = `${address(`video/${item.number}`)}#t=${Math.max(0, item.time_s - 2).toFixed(2)}`;
    }
    if (player.paused) player.play().catch(() => status("The browser cannot play this video", true)); else player.pause();
  }
  function toggleBoxes() {
    const shown = at("boxes").toggleAttribute("hidden") === false;
    at("toggle-boxes").setAttribute("aria-pressed", String(shown));
    at("found").hidden = !shown;
    placeBoxes();
  }
  function nextUnreviewed() {
    flush();
    const after = [...queue.slice(place + 1), ...queue.slice(0, place)];
    ask(`api/queue?${new URLSearchParams({ ...filters(), view: "unreviewed" })}`).then(({ numbers }) => {
      const open = new Set(numbers), found = after.find((number) => open.has(number));
      if (found === undefined) status("All of these are reviewed"); else goTo(found);
    }, (error) => status(error.message, true));
  }
  async function openHistory() {
    if (!item) return;
    const rows = await ask(`api/history/${item.number}?${parameters()}`);
    at("history").replaceChildren(...rows.map((one) => {
      const row = make("li", `${new Date(one.created_utc).toLocaleString()} · ${one.reviewer} · ${NAMES[one.field] ?? one.field}${one.undoes ? " (taken back)" : ""}: `);
      row.append(make("del", one.before ?? "nothing"), " → ", make("ins", one.after ?? "nothing"));
      return row;
    }));
    if (!rows.length) at("history").replaceChildren(make("li", "Nobody has changed anything here."));
    at("history-box").showModal();
  }

  // ---------------------------------------------------------------- find and replace
  const wanted = () => ({ ...filters(), uid: uid(), find: at("find").value, put: at("put").value, whole_words: at("whole").checked });
  async function preview(event) {
    event.preventDefault();
    try {
      const found = await ask("api/replace", wanted());
      at("replace-count").textContent = `${found.count} texts would change.`;
      at("changes").replaceChildren(...found.changes.map((one) => {
        const row = make("li", `${one.number + 1}, ${NAMES[one.field]}: `);
        row.append(make("del", one.before), " → ", make("ins", one.after));
        return row;
      }));
      at("apply").disabled = found.count === 0;
    } catch (error) { at("replace-count").textContent = error.message; }
  }
  async function apply() {
    at("apply").disabled = true;
    try {
      const found = await ask("api/replace", { ...wanted(), apply: true });
      at("replace-count").textContent = `${found.written} texts were changed.`;
      at("changes").replaceChildren();
      await Promise.all([showBatches(), load()]);
    } catch (error) { at("replace-count").textContent = error.message; }
  }
  let batchesAsked = 0;
  async function showBatches() {
    const asked = ++batchesAsked, rows = await ask("api/batches");
    if (asked !== batchesAsked) return;  // a newer list is shown or on its way
    at("batches").replaceChildren(...rows.map((one, place) => {
      const row = make("li", `${new Date(one.created_utc).toLocaleString()} · ${one.reviewer} · ${one.is_rollback ? "taken back" : "replaced"} in ${one.count} texts `);
      const back = make("button", "Take back", { type: "button", ariaKeyShortcuts: place === 0 ? "Alt+T" : null });
      back.addEventListener("click", async () => {
        back.disabled = true;
        const done = await ask("api/rollback", { reviewer, uid: uid(), batch: one.batch });
        at("replace-count").textContent = `${done.written} texts were put back.`;
        await Promise.all([showBatches(), load()]);
      });
      row.append(back);
      return row;
    }));
  }
  function openReplace() { flush(); at("replace-box").showModal(); showBatches(); at("find").focus(); }

  // ---------------------------------------------------------------- keys
  const edit = (field) => () => { const text = at(`text-${field}`); text.focus(); text.setSelectionRange(text.value.length, text.value.length); };
  const keyOf = (field) => box(field).querySelector(".head kbd")?.textContent;
  const WITH_KEYS = TEXTS.filter(keyOf), RICH = TEXTS.filter((field) => !keyOf(field));
  let richField = null;
  function nextRich() {  // one key for all fields of the schema rich, one after the other
    const shown = RICH.filter((field) => item && field in item.texts);
    if (!shown.length) { status("There are no more fields"); return; }
    richField = shown[(shown.indexOf(richField) + 1) % shown.length];
    at("rich").open = true;
    at(`text-${richField}`).focus();
  }
  const press = (key, nothing, where = document) => () => {  // the button that has this key, if there is one now
    const button = [...where.querySelectorAll(`button[aria-keyshortcuts="${key}"]`)].find((one) => one.checkVisibility() && !one.disabled);
    if (button) button.click(); else status(nothing);
  };
  const NO_REWRITE = "There is no other caption", NO_CLASH = "Nobody else has changed this text", SETTLED = "Nothing is left to settle";
  const KEYS = [
    ["1", "good", () => judge("good")], ["2", "needs work", () => judge("needs work")], ["3", "unusable", () => judge("unusable")],
    ["j", "next", () => move(1)], ["k", "previous", () => move(-1)], ["n", "next that I have not reviewed", nextUnreviewed],
    ...WITH_KEYS.map((field) => [keyOf(field), `edit ${NAMES[field].toLowerCase()}`, edit(field)]),
    ...WITH_KEYS.map((field) => [keyOf(field).toUpperCase(), `${NAMES[field].toLowerCase()} is wrong`, () => mark(field)]),
    ["c", "comment", edit("comment")], ["b", "detections", toggleBoxes], ["p", "play from two seconds before", play],
    ...(RICH.length ? [["e", "edit the next of the other fields", nextRich], ["E", "that field is wrong", () => { if (richField) mark(richField); }]] : []),
    ["z", "undo", () => takeBack("undo")], ["y", "redo", () => takeBack("redo")],
    ["t", "put the old caption back", press("t", NO_REWRITE)], ["T", "take the new caption", press("Shift+T", NO_REWRITE)],
    ["q", "keep my text where another has changed it", press("q", NO_CLASH)], ["w", "take the text of the other", press("w", NO_CLASH)],
    ["4", "settle a disagreement: good, or wrong", press("4", SETTLED)], ["5", "settle it: needs work, or right", press("5", SETTLED)], ["6", "settle it: unusable", press("6", SETTLED)],
    ["/", "search", () => at("word").focus()], ["v", "choose what is shown", () => at("view").focus()], ["g", "choose the stage", () => at("stage").focus()], ["i", "choose the video", () => at("video").focus()],
    ["x", "go on after a verdict, or stay", () => at("go-on").click()], ["l", "neighbours in time", () => at("neighbours").querySelector("[aria-current]").focus()],
    ["u", "who reviews", () => askName()], ["0", "agreement", () => at("agreement").click()], ["r", "find and replace", openReplace], ["h", "history", () => openHistory().catch((error) => status(error.message, true))],
    ["?", "these keys", () => at("help-box").showModal()],
  ];
  const MORE = [["Alt T", "in find and replace: take the last one back"], ["Esc", "leave a text; it is saved"], ["Ctrl Enter", "save a text and go to the next; in find and replace: replace"], ["← →", "previous, next"]];
  at("keys").append(...[...KEYS, ...MORE].flatMap(([key, name]) => { const term = make("dt"); term.append(make("kbd", key)); return [term, make("dd", name)]; }));
  addEventListener("keydown", (event) => {
    const typing = event.target.matches?.("textarea, input:not([type=checkbox]), select");
    if (at("replace-box").open) {
      const key = event.ctrlKey && event.key === "Enter" ? "Control+Enter" : event.altKey && event.key.toLowerCase() === "t" ? "Alt+T" : null;
      if (key) { event.preventDefault(); press(key, "", at("replace-box"))(); }
    }
    if (document.querySelector("dialog[open]")) return;
    if (typing) {
      if (event.key === "Escape") { event.preventDefault(); flush(); event.target.blur(); at("item").focus({ preventScroll: true }); }
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); flush(); event.target.blur(); move(1); }
      return;
    }
    if (event.ctrlKey || event.metaKey) {
      if (event.key.toLowerCase() === "z") { event.preventDefault(); takeBack(event.shiftKey ? "redo" : "undo"); }
      return;
    }
    if (event.altKey) return;
    const found = event.key === "ArrowRight" ? ["", "", () => move(1)] : event.key === "ArrowLeft" ? ["", "", () => move(-1)] : KEYS.find(([key]) => key === event.key);
    if (found && !(event.target.matches?.("video"))) { event.preventDefault(); found[2](); }
  });

  // ---------------------------------------------------------------- wiring
  for (const field of [...TEXTS, "comment"]) {
    const text = at(`text-${field}`);
    text.addEventListener("input", () => typed(field));
    text.addEventListener("focus", sayHere);
    text.addEventListener("blur", () => commit(field));
  }
  for (const field of TEXTS) box(field).querySelector(".wrong").addEventListener("click", () => mark(field));
  for (const button of document.querySelectorAll("[data-verdict]")) button.addEventListener("click", () => judge(button.dataset.verdict));
  const click = { undo: () => takeBack("undo"), redo: () => takeBack("redo"), previous: () => move(-1), next: () => move(1), play, apply, "toggle-boxes": toggleBoxes, "open-replace": openReplace, "open-help": () => at("help-box").showModal(), "open-history": openHistory, "close-replace": () => at("replace-box").close(), who: askName };
  for (const [id, how] of Object.entries(click)) at(id).addEventListener("click", () => how());
  at("replace-form").addEventListener("submit", preview);
  at("replace-form").addEventListener("input", () => { at("apply").disabled = true; });
  at("filters").addEventListener("submit", (event) => { event.preventDefault(); load().then(() => at("item").focus({ preventScroll: true })); });
  for (const id of ["view", "stage", "video"]) at(id).addEventListener("change", () => { flush(); load(); });
  let searching = 0;
  at("word").addEventListener("input", () => { clearTimeout(searching); searching = setTimeout(() => { flush(); load(); }, 250); });

  // ---------------------------------------------------------------- the start
  function askName() { flush(); at("name").value = reviewer; at("name-box").showModal(); at("name").select(); }
  at("name-box").addEventListener("cancel", (event) => { if (!reviewer) event.preventDefault(); });
  at("name-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = at("name").value.trim();
    if (!name) return;
    begin(name); at("name-box").close();
  });
  function begin(name) {
    reviewer = name;
    try { localStorage.setItem(WHO, name); } catch { /* as above */ }
    at("who").textContent = name;
    items.clear();
    load().then(toItem);
    send();
  }
  async function start() {
    try {
      pending = JSON.parse(localStorage.getItem(PENDING) || "[]").filter((one) => one && one.uid);
    } catch { pending = []; }
    try { session = await ask("api/session"); } catch (error) { status(error.message, true); return; }
    at("stage").value = session.stage ?? "";
    if (session.judgements) at("view").value = "unreviewed";
    at("video").append(...session.videos.map((name) => make("option", name, { value: name })));
    let known = null;
    try { known = localStorage.getItem(WHO); } catch { /* as above */ }
    if (known) begin(known); else askName();
  }
  start();
})();
