"use strict";

// Small helpers to build the page. All text goes in as text, never as markup.

// h makes an element: h("a.link", { href: "#/" }, "text", child…).
function h(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  const e = document.createElement(tag || "div");
  if (classes.length) e.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "style") e.style.cssText = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  put(e, children);
  return e;
}

// put adds children to an element, but for those that are not there.
function put(e, ...children) {
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
}

const $ = (selector) => document.querySelector(selector);

const numbers = new Intl.NumberFormat("en");
const number = (n) => numbers.format(n);

// percent writes a share of all: never 0 % or 100 % for what is not quite that.
function percent(n, all) {
  if (!all) return "–";
  const p = (100 * n) / all;
  if (p > 0 && p < 0.1) return "< 0.1 %";
  if (p < 100 && p > 99.9) return "> 99.9 %";
  return (Number.isInteger(p) ? p : p.toFixed(1)) + " %";
}

const plural = (n, thing) => `${number(n)} ${thing}${n === 1 ? "" : "s"}`;

// say tells what has happened to who cannot see it.
function say(text) {
  $("#status").textContent = text;
}

// select makes a labelled choice.
function select(label, options, value, onchange) {
  const s = h("select", { "aria-label": label, title: label, onchange: () => onchange(s.value) },
    options.map(([v, text]) => h("option", { value: v, selected: String(v) === String(value) }, text)));
  return h("label.choice", {}, h("span", {}, label), s);
}

// VirtualList shows many rows of equal height, of which only those in sight exist. One
// is active: it is moved by the arrow keys and opened by Enter.
class VirtualList {
  // row(i) makes the element of row i; opts: label, height, open(i), move(i), head.
  constructor(count, row, opts) {
    Object.assign(this, { count, row, opts, active: -1, shown: new Map() });
    this.height = opts.height || 28;
    this.id = `list${++VirtualList.made}`;
    this.space = h("div.space", { role: "presentation" });
    this.box = h("div.vlist" + (opts.class ? "." + opts.class : ""), {
      role: "listbox", tabindex: "0", "aria-label": opts.label, id: this.id,
      onscroll: () => this.draw(), onkeydown: (e) => this.key(e), onclick: (e) => this.click(e),
    }, this.space);
    this.element = h("div.listing", {}, opts.head, this.box);
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.resize(count);
  }

  resize(count) {
    this.count = count;
    this.active = Math.min(this.active, count - 1);
    this.space.style.height = `${count * this.height}px`;
    this.box.style.setProperty("--rows", count);
    this.redraw();
  }

  redraw() {
    for (const e of this.shown.values()) e.remove();
    this.shown.clear();
    this.draw();
  }

  draw() {
    const top = this.box.scrollTop, seen = this.box.clientHeight || 600, over = 8;
    const from = Math.max(0, Math.floor(top / this.height) - over);
    const to = Math.min(this.count, Math.ceil((top + seen) / this.height) + over);
    for (const [i, e] of this.shown) {
      if (i >= from && i < to) continue;
      e.remove();
      this.shown.delete(i);
    }
    for (let i = from; i < to; i++) {
      if (this.shown.has(i)) continue;
      const e = this.row(i);
      e.style.top = `${i * this.height}px`;
      e.style.height = `${this.height}px`;
      e.id = `${this.id}-${i}`;
      e.dataset.row = i;
      e.setAttribute("role", "option");
      e.setAttribute("aria-setsize", this.count);
      e.setAttribute("aria-posinset", i + 1);
      e.setAttribute("aria-selected", i === this.active);
      e.classList.toggle("active", i === this.active);
      this.space.append(e);
      this.shown.set(i, e);
    }
  }

  click(event) {
    const row = event.target.closest("[data-row]");
    if (!row || event.target.closest("a")) return;
    this.activate(Number(row.dataset.row), true);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1);
    const to = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page, PageUp: this.active - page, Home: 0, End: this.count - 1 }[event.key];
    if (event.key === "Enter" && this.active >= 0) {
      event.preventDefault();
      this.activate(this.active, true);
    } else if (to !== undefined && this.count > 0) {
      event.preventDefault();
      this.activate(Math.max(0, Math.min(this.count - 1, to)), false);
    }
  }

  // activate makes row i the active one, and opens it where that is wanted.
  activate(i, open) {
    this.active = i;
    this.reveal(i);
    for (const [k, e] of this.shown) {
      e.classList.toggle("active", k === i);
      e.setAttribute("aria-selected", k === i);
    }
    this.box.setAttribute("aria-activedescendant", `${this.id}-${i}`);
    if (open && this.opts.open) this.opts.open(i);
    else if (this.opts.move) this.opts.move(i);
  }

  // reveal scrolls so that row i is in sight; with centre, in the middle.
  reveal(i, centre) {
    const top = i * this.height, seen = this.box.clientHeight || 600;
    if (centre) this.box.scrollTop = top - seen / 2 + this.height;
    else if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.height > this.box.scrollTop + seen) this.box.scrollTop = top + this.height - seen;
    this.draw();
  }
}
VirtualList.made = 0;
