"use strict";

// The view of a function: its instructions by basic blocks, what each profile says of
// them, and of one of them in full.

// listingRows returns the rows of a function: a head for each block, and instructions.
function listingRows(code) {
  const rows = [];
  for (const block of code.blocks) {
    if (code.blocks.length > 1) rows.push({ block });
    for (let i = block.from; i < block.to; i++) rows.push({ inst: i });
  }
  return rows;
}

// lanes gives the branches to one place a lane to be drawn in: their rows, the row that
// they lead to, and the lane. Long lanes stand further out. Where there is no room for
// one, its lane is -1, and only its ends are drawn.
function lanes(code, rowOf, most) {
  const byTarget = new Map();
  for (const block of code.blocks) {
    const last = code.insts[block.to - 1];
    for (const next of block.next) {
      const to = code.blocks[next].from;
      const jumps = last.target === code.insts[to].addr || last.flow === "jump-indirect";
      if (!jumps) continue;
      const lane = byTarget.get(to) || { to: rowOf[to], from: [], lo: rowOf[to], hi: rowOf[to] };
      const row = rowOf[block.to - 1];
      lane.from.push(row);
      lane.lo = Math.min(lane.lo, row);
      lane.hi = Math.max(lane.hi, row);
      byTarget.set(to, lane);
    }
  }
  const all = [...byTarget.values()].sort((a, b) => a.hi - a.lo - (b.hi - b.lo));
  const taken = Array.from({ length: most }, () => []);
  for (const e of all) {
    e.lane = taken.findIndex((used) => used.every(([lo, hi]) => e.hi < lo || e.lo > hi));
    if (e.lane >= 0) taken[e.lane].push([e.lo, e.hi]);
  }
  return all;
}

const LANE = 6;

// gutter draws the lanes that pass a row.
function gutter(edges, row, width, height) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("aria-hidden", "true");
  const line = (d, extra) => {
    const path = document.createElementNS(ns, "path");
    path.setAttribute("d", d);
    path.setAttribute("class", "edge" + extra);
    svg.append(path);
  };
  const mid = height / 2, end = width - 2;
  for (const e of edges) {
    if (row < e.lo || row > e.hi) continue;
    if (e.lane < 0) {
      if (row === e.to) line(`M3 ${mid}H${end}M${end - 4} ${mid - 3}L${end} ${mid}L${end - 4} ${mid + 3}`, " far");
      else if (e.from.includes(row)) line(`M3 ${mid}H${end}M7 ${mid - 3}L3 ${mid}L7 ${mid + 3}`, " far");
      continue;
    }
    const x = width - 8 - e.lane * LANE, back = e.from.every((from) => from >= e.to) ? " back" : "";
    line(`M${x} ${row === e.lo ? mid : 0}V${row === e.hi ? mid : height}`, back);
    if (row === e.to) line(`M${x} ${mid}H${end}M${end - 4} ${mid - 3}L${end} ${mid}L${end - 4} ${mid + 3}`, back);
    else if (e.from.includes(row)) line(`M${x} ${mid}H${end}`, back);
  }
  return svg;
}

// probeWord says in a word or two what a profile says of a probe.
function probeWord(book, { verdict, counted }) {
  if (!counted) return { text: "–", kind: "none", title: "this profile counts it to no function" };
  if (verdict.unknown) return { text: "unknown", kind: "unknown", title: book.rules[verdict.rule].reason };
  if (verdict.rule >= 0) {
    const rule = book.rules[verdict.rule];
    return { text: rule.errno ? rule.errno.split(" ")[0] : "refused", kind: "refused", title: `${rule.id}: ${rule.reason}` };
  }
  const run = verdict.exec === "slot" ? (verdict.boosted ? "boosted" : "stepped") : verdict.exec === "emulate" ? "emulated" : verdict.exec;
  if (verdict.hazard >= 0) return { text: `${run} !`, kind: "hazard", title: `hazard: ${book.hazards[verdict.hazard].text}` };
  return { text: run + (verdict.depends ? " ?" : ""), kind: run, title: verdict.depends ? "for another CPU the answer is another" : "" };
}

function jumpWord(book, { jump }) {
  if (!jump) return { text: "", kind: "none", title: "" };
  if (jump.ok) return { text: `jump ${jump.region}`, kind: "ok", title: `the jump replaces ${jump.region} bytes` };
  if (jump.rule < 0) return { text: "", kind: "none", title: "" };
  const rule = book.rules[jump.rule];
  return { text: rule.id.replace(/^[a-z0-9]+\/(region-)?/, ""), kind: "no", title: `${rule.id}: ${rule.reason}` };
}

const chip = (word) => h(`span.chip.${word.kind}`, { title: word.title || null }, word.text);

function instructionText(file, inst, href, code) {
  const parts = textOf(file, inst);
  const first = typeof parts[0] === "string" ? parts.shift() : "";
  const space = first.search(/\s/);
  const out = [h("b.op", {}, space < 0 ? first : first.slice(0, space)), space < 0 ? "" : first.slice(space)];
  for (const part of parts) {
    if (typeof part === "string") {
      out.push(part);
      continue;
    }
    const i = file.find(part.target), own = code && i === code.i && part.target > code.start;
    const name = own ? `+0x${(part.target - code.start).toString(16)}` : file.nameAt(part.target);
    if (i >= 0) out.push(h("a", { href: href(i, part.target), tabindex: "-1" }, name || part.text));
    else out.push(part.text, name ? h("span.sym", {}, ` <${name}>`) : "");
  }
  return out;
}

// placeOf returns the address that the address of a view names: in hexadecimal, or as
// vfs_read or vfs_read+0x1c.
function placeOf(file, arg) {
  if (/^0x[0-9a-f]{1,16}$/.test(arg)) return file.addressOf(BigInt(arg));
  const [, name, offset] = /^(.*?)(?:\+(0x[0-9a-f]{1,8}))?$/s.exec(decodeURIComponent(arg || ""));
  const i = file.names.indexOf(name);
  return i < 0 ? NaN : file.addr[i] + Number(offset || 0);
}

async function functionView(main, { file, p, params, arg }) {
  const at = placeOf(file, arg);
  const i = file.find(at);
  if (i < 0) {
    put(main, h("h1", {}, "Nothing is here"), h("p.lead", {}, `${decodeURIComponent(arg || "")} is no function of ${file.about.name}, and no address in one.`));
    return "Nothing is here";
  }
  const code = await file.code(i);
  const start = file.addr[i], by = file.by[p], profile = file.profiles[p];
  const source = file.about.sources[file.source[i]];
  const returns = by.returns[i];
  put(main, 
    h("h1.mono", {}, file.names[i]),
    h("p.lead", {}, [file.hex(start), source ? `${source}:${file.line[i]}` : file.about.sections[file.section[i]], plural(file.size[i], "byte"), plural(code.insts.length, "instruction"), plural(code.blocks.length, "basic block")].join(" · "),
      file.symbols[i] ? h("span.remedy", {}, `symbol ${file.symbols[i]}`) : null,
      file.flags[i] & 2 ? h("span.warn", {}, " IFUNC: this is the resolver, which runs once, when the program is loaded; callers call what it returns.") : null,
      file.flags[i] & 1 ? h("span.warn", {}, " Its text could not be read.") : null),
    h("div.minis", {}, file.profiles.map((pr, k) => miniCard(file, k, i, k === p))),
    returns >= 0 ? h("p.note", {}, `No return probe by ${profile.name}: ${file.book.rules[returns].reason} (${file.book.rules[returns].id})`) : null);
  const notes = marksAt(code, code.start, code.end, TEXT_MARKS);
  if (notes.length) put(main, h("p.note", {}, `Its text: ${notes.join(", ")}.`));
  if (code.insts.length === 0) return file.names[i];
  const detail = h("aside.detail", { "aria-label": "The address", tabindex: "-1" });
  const listing = new Listing(code, p, (k) => {
    showDetail(detail, code, k, p, listing);
    detail.classList.add("open");
    const where = `#/function/${file.hex(code.insts[k].addr)}` + location.hash.replace(/^[^?]*/, "");
    history.replaceState(null, "", where);
  });
  const tables = tablesOf(code, listing);
  put(main, h("div.split", {}, h("div.left", {}, listing.list.element, tables), detail));
  const first = Math.max(0, code.insts.findIndex((inst) => at >= inst.addr && at < inst.addr + inst.len));
  showDetail(detail, code, first, p, listing);
  if (at !== start) {
    detail.classList.add("open");
    requestAnimationFrame(() => listing.choose(first));
  }
  listing.focus(first);
  return file.names[i];
}

function miniCard(file, p, i, chosen) {
  const by = file.by[p], parts = partsOf(COUNTS.map((name) => by[name][i]), 0);
  const insts = by.insts[i];
  return h("div.mini" + (chosen ? ".chosen" : ""), {}, h("b", {}, file.profiles[p].name), bar(parts, insts),
    h("span", {}, [`${percent(by.probeable[i], insts)} probeable`, file.profiles[p].optimized ? `${percent(by.optimizable[i], by.probeable[i])} jumps` : null, by.hazards[i] ? plural(by.hazards[i], "hazard") : null].filter(Boolean).join(" · ")));
}

// Listing is the list of a function's instructions.
class Listing {
  constructor(code, p, chosen, opts = {}) {
    Object.assign(this, { code, p, chosen, selected: -1 });
    this.rows = listingRows(code);
    this.rowOf = [];
    this.rows.forEach((row, r) => { if (row.inst !== undefined) this.rowOf[row.inst] = r; });
    const most = 8;
    this.edges = lanes(code, this.rowOf, most);
    this.gutter = 14 + LANE * Math.max(0, ...this.edges.map((e) => e.lane + 1));
    const profiles = opts.one ? [p] : code.file.profiles.map((_, k) => k);
    this.profiles = profiles;
    this.list = new VirtualList(this.rows.length, (r) => this.row(r), {
      label: `Instructions of ${code.file.names[code.i]}`, height: 24, class: "code",
      open: (r) => this.pick(r), move: (r) => this.pick(r),
      head: h("div.code-head", { "aria-hidden": "true", style: `--gutter:${this.gutter}px` },
        h("span", {}), h("span", {}, "offset"), h("span.bytes", {}, "bytes"), h("span", {}, "instruction"),
        profiles.map((k) => h("span.verdicts" + (k === p ? ".own" : ""), {}, code.file.profiles[k].name))),
    });
    this.list.box.style.setProperty("--gutter", `${this.gutter}px`);
    this.list.element.style.setProperty("--profiles", profiles.length);
  }

  row(r) {
    const row = this.rows[r], code = this.code, file = code.file;
    const lines = gutter(this.edges, r, this.gutter, 24);
    if (row.block) {
      const b = row.block;
      const led = code.landings.find((l) => l.addr === code.insts[b.from].addr);
      const facts = [];
      if (b.previous.length) facts.push(`from ${b.previous.slice(0, 6).join(", ")}${b.previous.length > 6 ? " …" : ""}`);
      if (led) facts.push(`reached by ${LANDINGS[led.kind]}`);
      const to = [...b.next.slice(0, 8).map(String), ...(b.next.length > 8 ? ["…"] : []), ...b.exits];
      if (to.length) facts.push(`to ${to.join(", ")}`);
      return h("div.crow.head", {}, lines, h("b", {}, `block ${b.number}`), h("span", {}, facts.join("  ·  ")));
    }
    const inst = code.insts[row.inst];
    const notes = marksAt(code, inst.addr, inst.addr + inst.len);
    if (inst.boot) notes.push(inst.boot === "cpu" ? "the CPU decides at boot what stands here" : "written at boot");
    const e = h("div.crow", {}, lines,
      h("span.off", {}, `+0x${(inst.addr - code.start).toString(16)}`),
      h("span.bytes", {}, bytesOf(file, inst).join(" ")),
      h("span.text", {}, instructionText(file, inst, (i, addr) => functionLink(file, i, addr), code), notes.length ? h("span.mark", {}, notes.join(", ")) : null),
      this.profiles.map((k) => {
        const answer = code.profiles[k][row.inst];
        return h("span.verdicts" + (k === this.p ? ".own" : ""), {}, chip(probeWord(file.book, answer)), chip(jumpWord(file.book, answer)));
      }));
    this.mark(e, row.inst);
    return e;
  }

  // mark shows whether an instruction is in the region of the selected one.
  mark(e, i) {
    const code = this.code, answer = this.selected >= 0 ? code.profiles[this.p][this.selected] : null;
    const addr = code.insts[i].addr, from = this.selected >= 0 ? code.insts[this.selected].addr : 0;
    const region = answer?.jump?.ok ? answer.jump.region : 0;
    e.classList.toggle("region", addr >= from && addr < from + region);
    const culprit = answer?.verdict.culprit ?? answer?.jump?.culprit;
    e.classList.toggle("culprit", culprit !== undefined && culprit >= addr && culprit < addr + code.insts[i].len);
  }

  pick(r) {
    const row = this.rows[r];
    if (row.inst === undefined) return;
    this.select(row.inst);
    this.chosen(row.inst);
  }

  select(i) {
    this.selected = i;
    for (const [r, e] of this.list.shown) if (this.rows[r].inst !== undefined) this.mark(e, this.rows[r].inst);
  }

  // choose goes to instruction i.
  choose(i) {
    this.list.reveal(this.rowOf[i], true);
    this.list.activate(this.rowOf[i], true);
  }

  focus(i) {
    this.selected = i;
    this.list.active = this.rowOf[i];
    this.list.redraw();
  }
}

// tablesOf lists the jump tables of a function, and the jumps that are not understood.
function tablesOf(code, listing) {
  if (code.jumps.length === 0) return null;
  const to = (addr) => {
    const k = code.index.get(addr);
    return h("button.link", { type: "button", onclick: () => listing.choose(k) }, `+0x${(addr - code.start).toString(16)}`);
  };
  return h("section.tables", { "aria-label": "Indirect jumps" }, h("h2", {}, "Indirect jumps"),
    h("ul", {}, code.jumps.map((j) => {
      const at = to(code.insts[j.inst].addr);
      if (j.kind === 0) return h("li", {}, at, ` not understood: ${j.what || "where it goes is not known"}`);
      if (j.kind === 2 || j.targets.length === 0) return h("li", {}, at, " jumps to a whole address that a register or memory holds");
      return h("li", {}, at, ` jump table at ${code.file.hex(j.table)}, ${j.count ? plural(j.count, "entry").replace("entrys", "entries") : "entries"} of ${plural(j.width, "byte")}, to `,
        j.targets.flatMap((t, k) => (k ? [" ", to(t)] : [to(t)])));
    })));
}

// showDetail explains one address, by each profile.
function showDetail(box, code, k, p, listing) {
  const file = code.file, inst = code.insts[k];
  const order = [p, ...file.profiles.map((_, x) => x).filter((x) => x !== p)];
  const place = (addr) => {
    const name = file.nameAt(addr) || file.hex(addr);
    const x = code.index.get(addr);
    if (x !== undefined) return h("button.link", { type: "button", onclick: () => listing.choose(x) }, name);
    const i = file.find(addr);
    return i >= 0 ? h("a", { href: functionLink(file, i, addr) }, name) : name;
  };
  const notes = marksAt(code, inst.addr, inst.addr + inst.len);
  const landed = code.landings.filter((l) => l.addr === inst.addr);
  box.replaceChildren();
  put(box,
    h("button.close", { type: "button", "aria-label": "Close", onclick: () => box.classList.remove("open") }, "×"),
    h("h2.mono", {}, file.nameAt(inst.addr)),
    h("p.mono.sub", {}, file.hex(inst.addr), h("br"), bytesOf(file, inst).join(" ")),
    h("p.mono.insn", {}, plainText(file, inst)),
    notes.length ? h("p.note", {}, notes.join(", ")) : null,
    inst.boot ? h("p.note", {}, inst.boot === "cpu" ? "While the kernel boots, the CPU decides what stands here." : "The kernel writes this while it boots, on every machine.") : null,
    landed.length ? h("p.note", {}, "Reached by ", landed.flatMap((l, n) => [n ? ", " : "", LANDINGS[l.kind], l.from !== l.addr ? [" (", place(l.from), ")"] : ""]), ".") : null,
    ...order.map((x) => answerSection(code, k, x, place)));
}

// answerSection is what one profile says of instruction k.
function answerSection(code, k, p, place) {
  const file = code.file, book = file.book, inst = code.insts[k], profile = file.profiles[p];
  const { verdict, jump, counted } = code.profiles[p][k];
  const out = [], add = (name, ...what) => out.push(h("dt", {}, name), h("dd", {}, ...what));
  let word, kind;
  if (!counted) [word, kind] = ["not judged: this profile counts it to no function", "none"];
  else if (verdict.unknown) [word, kind] = ["unknown", "unknown"];
  else if (verdict.rule >= 0) [word, kind] = ["refused", "refused"];
  else [word, kind] = ["may be probed", "ok"];
  if (verdict.rule >= 0) {
    const rule = book.rules[verdict.rule];
    if (rule.errno) add("errno", rule.errno);
    add("rule", h("a.mono", { href: link("/functions", { reasons: verdict.rule, profile: p }) }, rule.id));
    add("why", rule.reason);
    if (verdict.culprit !== undefined && verdict.culprit !== inst.addr) add("because of", place(verdict.culprit));
    if (rule.remedy) add("instead", rule.remedy);
    if (verdict.instead !== undefined) add("would do", place(verdict.instead));
  } else if (counted) {
    add("runs", { slot: verdict.boosted ? "as a copy in a slot, which ends in a jump back" : "as a copy in a slot" + (verdict.boost ? "; it could end in a jump back" : ""),
      emulate: "emulated" + (verdict.emulator ? ` (${verdict.emulator})` : ""), ftrace: "as an ftrace probe: no breakpoint" }[verdict.exec]);
    if (verdict.fixups) add("fix-ups", ["moves the instruction pointer back", "corrects the pushed return address", "restores the trap flag"].filter((_, b) => verdict.fixups >> b & 1).join(", "));
  }
  if (verdict.movedTo !== undefined) add("put at", place(verdict.movedTo));
  if (verdict.hazard >= 0) {
    const hz = book.hazards[verdict.hazard];
    add("hazard", h("b.warn", {}, hz.text), " ", h("a.mono", { href: link("/functions", { hazardList: verdict.hazard, profile: p }) }, hz.id), h("span.remedy", {}, seenText(hz)));
  }
  for (const n of verdict.notes || []) add("note", book.notes[n].text, " ", h("span.mono", {}, book.notes[n].id));
  if (verdict.depends) add("depends", "on another CPU the kernel writes another instruction, with another answer");
  if (jump) jumpFacts(code, k, p, place, add);
  return h("section.answer", { "aria-label": profile.name }, h("h3", {}, profile.name, " ", h(`span.chip.${kind}`, {}, word)), h("dl", {}, out));
}

function jumpFacts(code, k, p, place, add) {
  const file = code.file, jump = code.profiles[p][k].jump;
  if (jump.ok) {
    add("jump", `may take the breakpoint's place: it replaces ${plural(jump.region, "byte")}` + (jump.moved < jump.region ? `, of which ${jump.moved} run in the detour buffer` : ""), regionPicture(code, k, jump));
  } else if (jump.rule >= 0) {
    const rule = file.book.rules[jump.rule];
    add("no jump", rule.reason, " ", h("a.mono", { href: link("/functions", { jumpReasons: jump.rule, profile: p }) }, rule.id));
    if (jump.culprit !== undefined && jump.culprit !== code.insts[k].addr) add("because of", place(jump.culprit));
    if (rule.remedy) add("instead", rule.remedy);
  }
  if (jump.depends) add("depends", "for another CPU, or with other jump labels, the answer on the jump is another");
}

// regionPicture shows the bytes that the jump replaces, by instruction.
function regionPicture(code, k, jump) {
  const parts = [];
  let left = jump.region, used = 0;
  for (let i = k; left > 0 && i < code.insts.length; i++) {
    const inst = code.insts[i];
    parts.push(h("span.cell" + (used >= jump.moved ? ".dead" : ""), { title: plainText(code.file, inst) }, bytesOf(code.file, inst).join(" ")));
    left -= inst.len;
    used += inst.len;
  }
  return h("span.picture.mono", {}, parts);
}
