"use strict";

// What is shown follows the address after #: /VIEW/ARGUMENT?file=0&profile=1.

const files = meta.files.map((about, n) => new File(n, about));
const state = { file: 0, profile: 0, patterns: kept("patterns") === "1", redraw: null };

// keep and kept remember a choice where the browser allows it.
function keep(name, value) {
  try { localStorage.setItem("xol." + name, value); } catch { /* the page works without */ }
}

function kept(name) {
  try { return localStorage.getItem("xol." + name); } catch { return null; }
}

// link returns the address of a view of the file and profile at hand, or of others.
function link(path, params) {
  const all = new URLSearchParams();
  const file = params.file ?? state.file, profile = params.profile ?? state.profile;
  if (Number(file)) all.set("file", file);
  if (Number(profile)) all.set("profile", profile);
  for (const [k, v] of Object.entries(params)) if (k !== "file" && k !== "profile" && v !== undefined && v !== null) all.set(k, v);
  const query = all.toString();
  return `#${path}${query ? "?" + query : ""}`;
}

const functionLink = (file, i, addr = file.addr[i]) => link(`/function/${file.hex(addr)}`, { file: file.number, profile: file.number === state.file ? state.profile : 0 });

function go(hash) {
  if (location.hash === hash) route();
  else location.hash = hash;
}

const VIEWS = { "": overview, functions: functionsView, function: functionView, compare: compareView, both: bothView };
let turn = 0;

async function route() {
  const mine = ++turn;
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const [view, ...args] = path.replace(/^\//, "").split("/");
  const params = new URLSearchParams(query || "");
  state.file = Math.min(files.length - 1, Number(params.get("file")) || 0);
  const file = files[state.file];
  state.profile = Math.min(file.profiles.length - 1, Number(params.get("profile")) || 0);
  state.redraw = null;
  const main = h("div.view", {});
  let title;
  try {
    title = await (VIEWS[view] || overview)(main, { file, p: state.profile, params, arg: args[0], args });
  } catch (error) {
    console.error(error);
    put(main, h("h1", {}, "This cannot be shown"), h("p.lead", {}, String(error)));
  }
  if (mine !== turn) return;
  $("#main").replaceChildren(main);
  document.title = `${title} – xol report`;
  drawChoices(view);
  window.scrollTo(0, 0);
  if (mine > 1) {
    const focus = main.querySelector(".vlist, canvas");
    (focus || $("#main")).focus({ preventScroll: true });
    say(title);
  }
}

function drawChoices(view) {
  const several = files.length > 1 || files.some((f) => f.profiles.length > 1);
  const entries = [["", "Overview", link("/", {})], ["functions", "Functions", link("/functions", {})]];
  if (several) entries.push(["compare", "Compare", link("/compare", {})]);
  $("#nav").replaceChildren(...entries.map(([key, name, href]) => h("a", { href, "aria-current": key === view ? "page" : null }, name)));
  const file = files[state.file];
  const at = location.hash.replace(/^#/, "").split("?")[0] || "/";
  const here = /^\/(function|both)/.test(at) ? at : view === "functions" ? "/functions" : "/";
  const choices = [];
  if (view !== "compare" && view !== "both") {
    if (files.length > 1) choices.push(select("File", files.map((f, n) => [n, f.about.name]), state.file, (v) => go(link(here.startsWith("/function/") ? "/" : here, { file: v, profile: 0 }))));
    if (file.profiles.length > 1) choices.push(select("Profile", file.profiles.map((pr, n) => [n, pr.name]), state.profile, (v) => go(link(here, { profile: v }))));
  }
  $("#choices").replaceChildren(...choices);
}

// Search.

const FOUND = 50;

// searchFile returns what a query means in a file: an address, a place, or names.
function searchFile(file, query, most) {
  const q = query.trim();
  const place = /^(.+)\+(0x[0-9a-f]+|[0-9]+)$/i.exec(q);
  if (/^(0x[0-9a-f]{1,16}|[0-9a-f]{8,16})$/i.test(q)) {
    const addr = file.addressOf(BigInt(/^0x/i.test(q) ? q : "0x" + q)), i = file.find(addr);
    if (i >= 0) return [{ file, i, addr, name: file.nameAt(addr) }];
  }
  if (place) {
    const i = file.names.indexOf(place[1]);
    if (i >= 0) {
      const addr = file.addr[i] + Number(place[2]);
      return addr < file.addr[i] + file.size[i] ? [{ file, i, addr, name: q }] : [];
    }
  }
  const test = nameTest(q), low = q.toLowerCase();
  const found = [[], [], []]; // the name itself, names that start so, others
  for (let i = 0; i < file.n; i++) {
    const name = file.lower[i];
    if (test(name)) found[name === low ? 0 : name.startsWith(low) ? 1 : 2].push(i);
    else if (file.symbols[i] && test(file.symbols[i].toLowerCase())) found[2].push(i);
  }
  found[1].sort((a, b) => file.names[a].length - file.names[b].length);
  return found.flat().slice(0, most).map((i) => ({ file, i, addr: file.addr[i], name: file.names[i] }));
}

function startSearch() {
  const input = $("#search"), list = $("#found");
  let found = [], active = -1;
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const open = (k) => {
    if (!found[k]) return;
    close();
    input.blur();
    go(functionLink(found[k].file, found[k].i, found[k].addr));
  };
  const mark = (k) => {
    active = k;
    [...list.children].forEach((e, n) => {
      e.setAttribute("aria-selected", String(n === k));
      if (n === k) e.scrollIntoView({ block: "nearest" });
    });
    if (k >= 0) input.setAttribute("aria-activedescendant", `found-${k}`);
  };
  input.addEventListener("input", () => {
    const q = input.value.trim();
    if (!q) return close();
    const order = [files[state.file], ...files.filter((_, n) => n !== state.file)];
    found = order.flatMap((file) => searchFile(file, q, FOUND)).slice(0, FOUND);
    list.replaceChildren(...found.map((f, k) => h("li", { role: "option", id: `found-${k}`, "aria-selected": "false", onmousedown: (e) => { e.preventDefault(); open(k); } },
      h("span.name", {}, f.name), h("span.addr", {}, f.file.hex(f.addr)), files.length > 1 ? h("span.where", {}, f.file.about.name) : null)));
    if (found.length === 0) list.append(h("li.empty", { "aria-disabled": "true" }, "Nothing is called so, and no function holds such an address."));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(found.length ? 0 : -1);
    say(found.length === FOUND ? `${FOUND} or more found` : `${found.length} found`);
  });
  input.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      if (found.length) mark((active + (e.key === "ArrowDown" ? 1 : found.length - 1)) % found.length);
    } else if (e.key === "Enter") {
      e.preventDefault();
      open(active);
    } else if (e.key === "Escape") {
      input.value = "";
      close();
    }
  });
  input.addEventListener("blur", close);
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
    e.preventDefault();
    input.focus();
    input.select();
  });
  input.disabled = false;
}

// Light and dark.

const THEMES = ["auto", "light", "dark"];

function showTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = $("#theme");
  button.textContent = { auto: "◐", light: "☀", dark: "☾" }[theme];
  button.setAttribute("aria-label", `Colours: ${theme}`);
  button.title = `Colours: ${theme}`;
  if (state.redraw) state.redraw();
}

function startTheme() {
  let theme = THEMES.includes(kept("theme")) ? kept("theme") : "auto";
  showTheme(theme);
  $("#theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    keep("theme", theme);
    showTheme(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.redraw && state.redraw());
}

async function start() {
  startTheme();
  $("#about").textContent = `Written by xol ${meta.version}. The page has every function and instruction. Of what xol explain says of an address it leaves out ` +
    "the bytes of slots and detour buffers, offsets in the file, lines within functions, and what other interfaces than register_kprobe refuse.";
  if (typeof DecompressionStream === "undefined") {
    $("#main").replaceChildren(h("p.wait", {}, "This browser cannot unpack the report's data. One of 2023 or later can."));
    return;
  }
  for (const file of files) await file.load();
  startSearch();
  addEventListener("hashchange", route);
  await route();
  document.documentElement.dataset.ready = "1";
}

start();
