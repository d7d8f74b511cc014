"use strict";

// Two files, or two profiles, side by side: what was gained and what was lost.

// sides are all that can be compared: each profile of each file.
const sides = () => files.flatMap((file, f) => file.profiles.map((profile, p) => ({ f, p, name: (files.length > 1 ? file.about.name + " · " : "") + profile.name })));

const MEASURES = {
  probeable: "can be probed",
  optimizable: "become jumps",
  hazards: "hazards",
  refused: "refused",
  insts: "instructions",
};

// pair matches the functions of two files: by name, those of one name in their order.
function pair(a, b) {
  if (a === b) return Array.from({ length: a.n }, (_, i) => [i, i]);
  const byName = new Map();
  for (let i = 0; i < b.n; i++) {
    const list = byName.get(b.names[i]);
    if (list) list.push(i);
    else byName.set(b.names[i], [i]);
  }
  const pairs = [];
  for (let i = 0; i < a.n; i++) {
    const list = byName.get(a.names[i]);
    pairs.push([i, list && list.length ? list.shift() : -1]);
  }
  for (const list of byName.values()) for (const i of list) pairs.push([-1, i]);
  return pairs;
}

const SHOWS = {
  changed: { name: "in both, and changed", test: (r) => r.a >= 0 && r.b >= 0 && r.change !== 0 },
  gained: { name: "in both, with more", test: (r) => r.a >= 0 && r.b >= 0 && r.change > 0 },
  lost: { name: "in both, with less", test: (r) => r.a >= 0 && r.b >= 0 && r.change < 0 },
  added: { name: "in B only", test: (r) => r.a < 0 },
  removed: { name: "in A only", test: (r) => r.b < 0 },
};

function compareView(main, { params }) {
  const all = sides();
  const pick = (name, otherwise) => Math.min(all.length - 1, params.has(name) ? Number(params.get(name)) : otherwise);
  const second = all.findIndex((s) => s.f === 1);
  const [x, y] = [pick("a", 0), pick("b", second > 0 ? second : Math.min(1, all.length - 1))];
  const [A, B] = [all[x], all[y]], [fa, fb] = [files[A.f], files[B.f]];
  const measure = MEASURES[params.get("by")] ? params.get("by") : "probeable";
  let show = SHOWS[params.get("show")] ? params.get("show") : "changed";
  const same = (changes) => link("/compare", { a: x, b: y, by: measure, show, ...changes });
  const ca = fa.by[A.p][measure], cb = fb.by[B.p][measure];
  const rows = pair(fa, fb).map(([a, b]) => ({ a, b, na: a >= 0 ? ca[a] : 0, nb: b >= 0 ? cb[b] : 0, change: (b >= 0 ? cb[b] : 0) - (a >= 0 ? ca[a] : 0) }));
  const size = (r) => Math.abs(r.change);
  let shown = [];
  const list = new VirtualList(0, (i) => compareRow(fa, fb, A, B, shown[i]), {
    label: "Functions that differ", height: 44, class: "compare", open: (i) => open(shown[i]),
  });
  const open = (r) => {
    if (r.a < 0) go(functionLink(fb, r.b));
    else if (r.b < 0 || fa === fb) go(functionLink(fa, r.a));
    else go(link(`/both/${fa.hex(fa.addr[r.a])}/${fb.hex(fb.addr[r.b])}`, { a: x, b: y }));
  };
  const counts = Object.fromEntries(Object.entries(SHOWS).map(([k, s]) => [k, rows.filter(s.test).length]));
  if (counts[show] === 0) show = Object.keys(SHOWS).find((k) => counts[k] > 0) || show;
  shown = rows.filter(SHOWS[show].test).sort((r, s) => size(s) - size(r) || s.nb + s.na - r.nb - r.na);
  list.resize(shown.length);
  put(main, 
    h("h1", {}, "Compare"),
    h("div.bar-row", {},
      select("A", all.map((s, i) => [i, s.name]), x, (v) => go(same({ a: v }))),
      h("button.toggle", { type: "button", title: "Exchange A and B", "aria-label": "Exchange A and B", onclick: () => go(same({ a: y, b: x })) }, "⇄"),
      select("B", all.map((s, i) => [i, s.name]), y, (v) => go(same({ b: v })))),
    totalsTable(fa, fb, A, B),
    h("div.two", {}, changeTable(fa, fb, A, B, "reasons", "Why no probe"), changeTable(fa, fb, A, B, "jumpReasons", "Why no jump")),
    h("h2", {}, "Functions"),
    h("div.bar-row", {},
      select("Measure", Object.entries(MEASURES), measure, (v) => go(same({ by: v }))),
      select("Show", Object.entries(SHOWS).map(([k, s]) => [k, `${s.name} (${number(counts[k])})`]), show, (v) => go(same({ show: v })))),
    shown.length ? list.element : h("p.empty", {}, "No function differs in this."));
  return "Compare";
}

const signed = (n) => (n > 0 ? "+" : n < 0 ? "−" : "±") + number(Math.abs(n));
const changeKind = (n, bad) => (n === 0 ? "same" : (n > 0) !== bad ? "gain" : "loss");

function totalsTable(fa, fb, A, B) {
  const pa = fa.profiles[A.p], pb = fb.profiles[B.p];
  const row = (name, a, b, ofA, ofB, bad) => h("tr", {}, h("th", { scope: "row" }, name),
    h("td.num", {}, number(a), h("small", {}, ofA ? percent(a, ofA) : "")), h("td.num", {}, number(b), h("small", {}, ofB ? percent(b, ofB) : "")),
    h(`td.num.${bad === null ? "same" : changeKind(b - a, bad)}`, {}, signed(b - a)));
  const [ia, ib] = [pa.counts, pb.counts];
  return h("table.totals", {},
    h("thead", {}, h("tr", {}, h("td", {}), h("th.num", { scope: "col" }, "A"), h("th.num", { scope: "col" }, "B"), h("th.num", { scope: "col" }, "change"))),
    h("tbody", {},
      row("functions", fa.n, fb.n, 0, 0, null),
      row("instructions", ia[0], ib[0], 0, 0, null),
      row("can be probed", ia[1], ib[1], ia[0], ib[0], false),
      row("boosted", ia[2], ib[2], ia[1], ib[1], false),
      row("refused", ia[6], ib[6], ia[0], ib[0], true),
      row("hazards", ia[7], ib[7], ia[1], ib[1], true),
      row("become jumps", ia[10], ib[10], ia[1], ib[1], false)));
}

// changeTable ranks rules by how much more or less they refuse.
function changeTable(fa, fb, A, B, key, title) {
  const sums = new Map();
  const take = (file, p, side) => {
    for (const [r, n] of file.profiles[p][key]) {
      const rule = file.book.rules[r];
      if (!sums.has(rule.id)) sums.set(rule.id, { rule, n: [0, 0] });
      sums.get(rule.id).n[side] += n;
    }
  };
  take(fa, A.p, 0);
  take(fb, B.p, 1);
  const list = [...sums.values()].filter((s) => s.n[0] !== s.n[1]).sort((s, t) => Math.abs(t.n[1] - t.n[0]) - Math.abs(s.n[1] - s.n[0]));
  return h("section", { "aria-label": title }, h("h2", {}, title), list.length === 0 ? h("p.empty", {}, "The same reasons, as often.") : h("table.changes", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Rule"), h("th.num", { scope: "col" }, "A"), h("th.num", { scope: "col" }, "B"), h("th.num", { scope: "col" }, "change"))),
    h("tbody", {}, list.map((s) => h("tr", { title: s.rule.reason }, h("th.mono", { scope: "row" }, s.rule.id), h("td.num", {}, number(s.n[0])), h("td.num", {}, number(s.n[1])),
      h(`td.num.${changeKind(s.n[1] - s.n[0], true)}`, {}, signed(s.n[1] - s.n[0])))))));
}

function compareRow(fa, fb, A, B, r) {
  const name = r.a >= 0 ? fa.names[r.a] : fb.names[r.b];
  const text = r.a < 0 ? "only in B" : r.b < 0 ? "only in A" : `${number(r.na)} → ${number(r.nb)}`;
  const facts = [];
  if (r.a >= 0) facts.push(`A: ${percent(fa.by[A.p].probeable[r.a], fa.by[A.p].insts[r.a])} probeable, ${number(fa.by[A.p].optimizable[r.a])} jumps`);
  if (r.b >= 0) facts.push(`B: ${percent(fb.by[B.p].probeable[r.b], fb.by[B.p].insts[r.b])} probeable, ${number(fb.by[B.p].optimizable[r.b])} jumps`);
  return h("div.frow.diff", {}, h("span.name", {}, name), h("span.facts", {}, facts.join(" · ")), h("span.where", {}, text), h(`span.change.${changeKind(r.change, false)}`, {}, signed(r.change)));
}

// bothView shows a function of two files side by side.
async function bothView(main, { params, args }) {
  const all = sides(), A = all[Number(params.get("a"))], B = all[Number(params.get("b"))];
  const one = async (side, arg, label) => {
    const file = files[side.f], i = file.find(file.addressOf(BigInt(arg)));
    const code = await file.code(i);
    const detail = h("aside.detail.under", { "aria-label": `The address in ${label}`, tabindex: "-1" });
    const listing = new Listing(code, side.p, (k) => showDetail(detail, code, k, side.p, listing), { one: true });
    listing.focus(0);
    showDetail(detail, code, 0, side.p, listing);
    return h("section.side", { "aria-label": label }, h("h2", {}, `${label}: ${side.name}`), miniCard(file, side.p, i, false),
      h("p.note", {}, [h("a.mono", { href: functionLink(file, i) }, file.hex(file.addr[i])), ` · ${plural(code.insts.length, "instruction")} · ${plural(code.blocks.length, "basic block")}`]), listing.list.element, detail);
  };
  const [a, b] = await Promise.all([one(A, args[0], "A"), one(B, args[1], "B")]);
  const file = files[A.f], name = file.names[file.find(file.addressOf(BigInt(args[0])))];
  put(main, h("h1.mono", {}, name), h("p.lead", {}, h("a", { href: link("/compare", { a: params.get("a"), b: params.get("b") }) }, "Back to the comparison")), h("div.sides", {}, a, b));
  return name;
}
