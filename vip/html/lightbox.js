"use strict";
// The only comfort that needs a script: a keyframe fills the window, arrow keys go on to the next.
(() => {
  const box = document.getElementById("lightbox");
  const pictures = [...document.querySelectorAll(".card .picture")].filter((picture) => picture.querySelector("img"));
  if (!box || !box.showModal) return;
  let at = 0;

  const show = (index) => {
    at = (index + pictures.length) % pictures.length;
    const copy = pictures[at].cloneNode(true);
    for (const name of ["role", "tabindex", "aria-label"]) copy.removeAttribute(name);
    box.querySelector(".stage").replaceChildren(copy);
    box.querySelector(".title").textContent = pictures[at].dataset.title;
    if (!box.open) box.showModal();
  };
  const moves = { previous: () => show(at - 1), next: () => show(at + 1), close: () => box.close() };

  pictures.forEach((picture, index) => {
    picture.classList.add("opens");
    picture.setAttribute("role", "button");
    picture.setAttribute("tabindex", "0");
    picture.setAttribute("aria-label", "Enlarge " + picture.querySelector("img").alt);
    picture.addEventListener("click", () => show(index));
    picture.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      show(index);
    });
  });
  box.addEventListener("click", (event) => {
    const move = event.target.dataset.do;
    if (move) moves[move]();
    else if (!event.target.closest("img")) box.close();
  });
  box.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: "previous", ArrowRight: "next" }[event.key];
    if (move) moves[move]();
  });
  box.addEventListener("close", () => {
    box.querySelector(".stage").replaceChildren();
    pictures[at].focus({ preventScroll: true });
    pictures[at].scrollIntoView({ block: "nearest" });
  });
})();
