"use strict";
// Names and texts come from files of strangers. They enter the page as text and attributes of elements that are made
// here, never as markup, and what cannot be seen in them is written out.

/** An element with attributes, listeners ("onclick") and children: elements or text. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function makeSvg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const kHidden = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Text to be shown: no character moves, hides or reorders others. */
function readable(text, most = 400) {
  const shown = text.length > most ? `${text.slice(0, most)}...` : text;
  return shown.replace(kHidden, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** How many characters all paths share: those of the folder that all are in. */
function sharedLength(paths) {
  let shared = paths[0] ?? "";
  for (const path of paths) while (!path.startsWith(shared)) shared = shared.slice(0, -1);
  return shared.lastIndexOf("/") + 1;
}

function nameOf(item) {
  return item.name === "" ? "(the whole content)" : readable(item.name);
}

/** The theme is the system's until the reader switches it. */
function attachTheme(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.setAttribute("aria-label", "Switch between dark and light");
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  system.addEventListener("change", label);
  label();
}

/** Large figures under their names. */
function tiles(pairs) {
  const list = make("dl", { class: "tiles" });
  for (const [name, text] of pairs) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, text)));
  return list;
}

/** Two columns of names and texts, folded until they are asked for. */
function foldedList(title, pairs) {
  const list = make("dl", { class: "pairs" });
  for (const [name, text] of pairs) list.append(make("dt", {}, name), make("dd", {}, text));
  return make("details", {}, make("summary", {}, title), list);
}

/** What keeps a page from being complete, in the open. */
function failures(title, pairs) {
  const list = foldedList(title, pairs);
  list.open = true;
  return list;
}

/** A dialog about one row: pairs of names and texts, and a drawing or none. */
function showDetails(title, pairs, drawing) {
  const dialog = document.getElementById("details");
  const close = make("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const list = make("dl", { class: "pairs" });
  for (const [name, text] of pairs) list.append(make("dt", {}, name), make("dd", {}, text));
  dialog.replaceChildren(make("h2", { id: "details-title" }, title), ...(drawing ? [drawing] : []), list, close);
  dialog.showModal();
}
