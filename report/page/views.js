"use strict";

// The views of a whole file: its summary with the map and the reasons, and the list of
// its functions.

// partsOf divides the instructions of a profile by how they would run.
function partsOf(counts, undecided) {
  const c = Object.fromEntries(COUNTS.map((name, k) => [name, counts[k]]));
  return [
    { key: "boosted", name: "boosted", n: c.boosted, title: "the copy ends in a jump back" },
    { key: "stepped", name: "stepped", n: c.stepped, title: "the copy is single-stepped, or ends in a breakpoint" },
    { key: "emulated", name: "emulated", n: c.emulated, title: "the mechanism does what the instruction does" },
    { key: "ftrace", name: "ftrace", n: c.ftrace, title: "no breakpoint" },
    { key: "refused", name: "refused", n: c.refused - 0, title: "no probe may be put there" },
    { key: "unknown", name: "unknown", n: undecided || 0, title: "the file tells too little" },
  ].filter((part) => part.n > 0);
}

// bar draws parts of a whole, beside each other.
function bar(parts, all) {
  return h("div.bar", { role: "img", "aria-label": parts.map((p) => `${p.name} ${percent(p.n, all)}`).join(", ") },
    parts.map((p) => h(`span.part.${p.key}`, { style: `flex-grow:${p.n}`, title: `${p.name}: ${number(p.n)}` })));
}

// profileCard is the summary of a file by one profile.
function profileCard(file, p, chosen) {
  const profile = file.profiles[p];
  const c = Object.fromEntries(COUNTS.map((name, k) => [name, profile.counts[k]]));
  const parts = partsOf(profile.counts, profile.undecided);
  const fact = (name, n, all, note, href) => h("div.fact", {}, h("dt", {}, name), h("dd", {}, href ? h("a", { href }, all ? percent(n, all) : number(n)) : all ? percent(n, all) : number(n), h("small", {}, note)));
  return h("section.card" + (chosen ? ".chosen" : ""), { "aria-label": `Summary by ${profile.name}` },
    h("h3", {}, chosen ? profile.name : h("a", { href: link("/", { profile: p }) }, profile.name), chosen ? h("span.tag", {}, "shown") : null),
    profile.asked ? h("p.note", {}, `answers for ${profile.asked}: the nearest older version whose answers are known`) : null,
    h("dl.facts", {},
      fact("can be probed", c.probeable, c.insts, `${number(c.probeable)} of ${number(c.insts)} instructions`),
      profile.optimized ? fact("become jumps", c.optimizable, c.probeable, `${number(c.optimizable)} of the probeable`) : null,
      fact("hazardous", c.hazards, 0, "accepted, then executed wrongly", c.hazards ? link("/functions", { sort: "hazards", profile: p }) : null)),
    bar(parts, c.insts),
    h("ul.key", {}, parts.map((part) => h("li", { title: part.title }, h(`i.part.${part.key}`, { "aria-hidden": "true" }), `${part.name} `, h("b", {}, percent(part.n, c.insts))))),
    profile.gaps ? h("p.note", {}, `${plural(profile.gaps, "gap")}, where bytes are no instruction`) : null,
    c.depends ? h("p.note", {}, `${plural(c.depends, "answer")} would be otherwise on another CPU`) : null,
    profile.assumed?.length ? h("p.note", {}, `assumed, as Debian builds it: ${profile.assumed.join(", ")}`) : null);
}

// REASONS are what functions may be listed for.
const REASONS = [
  { key: "reasons", title: "No probe", list: (profile) => profile.reasons, of: (profile) => profile.counts[0], all: "of all instructions", book: "rules" },
  { key: "jumpReasons", title: "No jump", list: (profile) => profile.jumpReasons, of: (profile) => profile.counts[1], all: "of the probeable", book: "rules" },
  { key: "hazardList", title: "Hazards", list: null, of: (profile) => profile.counts[1], all: "of the probeable", book: "hazards" },
];

// rankedHazards adds up hazards over all functions.
function rankedHazards(file, p) {
  const sums = new Map();
  const all = file.by[p].hazardList.all;
  for (let k = 0; k < all.length; k += 2) sums.set(all[k], (sums.get(all[k]) || 0) + all[k + 1]);
  return [...sums].sort((a, b) => b[1] - a[1]);
}

function reasonTable(file, p, kind) {
  const profile = file.profiles[p];
  const list = kind.list ? kind.list(profile) : rankedHazards(file, p);
  if (list.length === 0) return h("p.empty", {}, { reasons: "Nothing is refused.", jumpReasons: "No jump is refused.", hazardList: "No hazard is known here." }[kind.key]);
  const of = kind.of(profile), most = list[0][1];
  return h("table.reasons", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Rule"), h("th.num", { scope: "col" }, "Instructions"), h("th", { scope: "col" }, "Why"))),
    h("tbody", {}, list.map(([r, n]) => {
      const rule = file.book[kind.book][r];
      return h("tr", {},
        h("th", { scope: "row" }, h("a", { href: link("/functions", { [kind.key]: r }), title: "the functions" }, rule.id), rule.errno ? h("span.errno", {}, rule.errno) : null),
        h("td.num", {}, h("span.meter", { style: `--share:${n / most}` }), number(n), h("small", {}, percent(n, of))),
        h("td", {}, rule.reason || rule.text, rule.remedy ? h("span.remedy", {}, `Instead: ${rule.remedy}`) : null));
    })));
}

function overview(main, { file, p, params }) {
  const about = file.about;
  let metric = params.get("metric") || "probeable";
  if (!METRICS[metric]) metric = "probeable";
  const map = new TreeMap(file, p, metric, {
    patterns: state.patterns,
    open: (i) => go(functionLink(file, i)),
  });
  const choice = h("div.segments", { role: "group", "aria-label": "Colour by" },
    Object.entries(METRICS).filter(([key]) => key !== "optimizable" || file.profiles[p].optimized).map(([key, m]) => h("button", {
      type: "button", "aria-pressed": String(key === metric), onclick: (e) => {
        metric = map.metric = key;
        for (const b of choice.children) b.setAttribute("aria-pressed", String(b === e.currentTarget));
        map.draw();
        say(`The map shows what share ${m.name}`);
      },
    }, m.name)));
  const patterns = h("button.toggle", { type: "button", "aria-pressed": String(state.patterns), onclick: () => {
    map.patterns = state.patterns = !state.patterns;
    keep("patterns", state.patterns ? "1" : "");
    patterns.setAttribute("aria-pressed", String(state.patterns));
    map.draw();
  } }, "Patterns");
  const reasons = h("div.reason", {});
  const tabs = h("div.segments", { role: "tablist", "aria-label": "Reasons" });
  const show = (kind) => {
    reasons.replaceChildren(reasonTable(file, p, kind));
    for (const t of tabs.children) t.setAttribute("aria-selected", String(t.dataset.key === kind.key));
  };
  tabs.append(...REASONS.map((kind) => h("button", { type: "button", role: "tab", "data-key": kind.key, onclick: () => show(kind) }, kind.title)));
  const c = file.profiles[p].counts;
  show(c[6] === 0 && c[1] > c[10] ? REASONS[1] : REASONS[0]);
  put(main, 
    h("h1", {}, about.name),
    h("p.lead", {}, [`${about.arch} ${about.kind}`, about.kernel ? `Linux ${about.kernel}` : null, plural(about.functions, "function")].filter(Boolean).join(" · "),
      about.missing ? h("span.warn", {}, ` Not known of this kernel: ${about.missing}.`) : null,
      about.unread ? h("span.warn", {}, ` The text of ${plural(about.unread, "function")} could not be read.`) : null),
    h("div.cards", {}, file.profiles.map((_, k) => profileCard(file, k, k === p))),
    h("section", { "aria-label": "Map" },
      h("div.bar-row", {}, h("h2", {}, "Map"), choice, patterns), map.element),
    h("section", { "aria-label": "Reasons" },
      h("div.bar-row", {}, h("h2", {}, "Reasons"), tabs), reasons));
  state.redraw = () => map.draw();
  return about.name;
}

// SORTS of the list of functions: by a number of each.
const SORTS = {
  address: { name: "address", of: () => null },
  insts: { name: "instructions", of: (by, i) => by.insts[i] },
  refused: { name: "refused", of: (by, i) => by.refused[i] },
  hazards: { name: "hazards", of: (by, i) => by.hazards[i] },
  optimizable: { name: "jumps", of: (by, i) => by.optimizable[i] },
};

// nameTest returns what decides whether a name is looked for: a part of it, or a glob.
function nameTest(query) {
  const q = query.toLowerCase();
  if (!/[*?]/.test(q)) return (name) => name.includes(q);
  const re = new RegExp("^" + q.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".") + "$");
  return (name) => re.test(name);
}

function functionsView(main, { file, p, params }) {
  const by = file.by[p];
  const reason = REASONS.find((kind) => params.has(kind.key));
  const rule = reason ? Number(params.get(reason.key)) : -1;
  let sort = SORTS[params.get("sort")] ? params.get("sort") : reason ? "count" : "address";
  let query = params.get("q") || "";
  const sorts = { ...SORTS };
  if (reason) sorts.count = { name: "times refused", of: (_, i) => by[reason.key].count(i, rule) };
  if (reason?.key === "hazardList") sorts.count.name = "times hazardous";
  let rows = [];
  const list = new VirtualList(0, (x) => functionRow(file, p, rows[x], reason, rule), {
    label: "Functions", height: 44, class: "functions", open: (x) => go(functionLink(file, rows[x])),
  });
  const count = h("span.count", { role: "status" });
  const fill = () => {
    const test = nameTest(query.trim());
    rows = [];
    for (let i = 0; i < file.n; i++) {
      if (reason && !by[reason.key].count(i, rule)) continue;
      if (query && !test(file.lower[i]) && !(file.symbols[i] && test(file.symbols[i].toLowerCase()))) continue;
      rows.push(i);
    }
    const of = sorts[sort].of;
    if (sort !== "address") {
      if (sort !== "count" && sort !== "insts") rows = rows.filter((i) => of(by, i) > 0);
      rows.sort((a, b) => of(by, b) - of(by, a) || a - b);
    }
    list.resize(rows.length);
    list.box.scrollTop = 0;
    count.textContent = plural(rows.length, "function");
  };
  fill();
  const entry = reason ? file.book[reason.book][rule] : null;
  put(main, 
    h("h1", {}, entry ? entry.id : "Functions"),
    entry ? h("p.lead", {}, `${reason.title}: ${entry.reason || entry.text}`, entry.errno ? h("span.errno", {}, entry.errno) : null, entry.remedy ? h("span.remedy", {}, `Instead: ${entry.remedy}`) : null,
      entry.span ? h("span.remedy", {}, seenText(entry)) : null, " ", h("a", { href: link("/functions", {}) }, "All functions")) : null,
    h("div.bar-row", {},
      h("label.choice", {}, h("span", {}, "Name"), h("input", { type: "search", value: query, placeholder: "part of a name, or vfs_*", oninput: (e) => { query = e.target.value; fill(); } })),
      select("Order by", Object.entries(sorts).map(([k, s]) => [k, s.name]), sort, (v) => { sort = v; fill(); }), count),
    list.element);
  return entry ? entry.id : "Functions";
}

function functionRow(file, p, i, reason, rule) {
  const by = file.by[p], insts = by.insts[i], probeable = by.probeable[i];
  const source = file.about.sources[file.source[i]];
  const facts = [plural(insts, "instruction"), `${percent(probeable, insts)} probeable`];
  if (file.profiles[p].optimized && probeable) facts.push(`${percent(by.optimizable[i], probeable)} jumps`);
  if (by.hazards[i]) facts.push(plural(by.hazards[i], "hazard"));
  if (reason) facts.unshift(`${number(by[reason.key].count(i, rule))} ×`);
  return h("div.frow", {},
    h("span.addr", {}, file.hex(file.addr[i])),
    h("a.name", { href: functionLink(file, i), tabindex: "-1" }, file.names[i]),
    h("span.facts", {}, facts.join(" · ")),
    h(source ? "span.where" : "span.where.section", {}, source ? `${source.split("/").pop()}:${file.line[i]}` : file.about.sections[file.section[i]]),
    h("span.tiny", { "aria-hidden": "true" }, bar([{ key: "ok", name: "", n: by.optimizable[i] }, { key: "stepped", name: "", n: probeable - by.optimizable[i] }, { key: "refused", name: "", n: by.refused[i] }].filter((x) => x.n > 0), insts)));
}

function seenText(entry) {
  const seen = entry.seen || [];
  const list = seen.length > 3 ? `${seen[0]} … ${seen[seen.length - 1]} (${seen.length} versions)` : seen.join(", ");
  return (seen.length ? `Seen on ${list}; ` : "") + `expected on ${entry.span}.`;
}
