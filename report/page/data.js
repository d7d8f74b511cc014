"use strict";

// The data of the page: columns of numbers and texts, compressed in blocks that are
// unpacked when they are looked at. Package report of xol writes what is read here.

const meta = JSON.parse(document.getElementById("report").textContent);

// unpack returns the columns of a block.
async function unpack(id) {
  const text = document.getElementById(id).textContent;
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const sizes = new DataView(bytes.buffer);
  const columns = [];
  const n = sizes.getUint32(0, true);
  let at = 4 + 4 * n;
  for (let i = 0; i < n; i++) {
    const size = sizes.getUint32(4 + 4 * i, true);
    columns.push(new Column(bytes.subarray(at, at + size)));
    at += size;
  }
  return columns;
}

// Column reads one column from at on.
class Column {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  byte() {
    return this.bytes[this.at++];
  }

  // uint reads a number of any length, the lowest seven bits first.
  uint() {
    let v = 0, scale = 1, b;
    do {
      b = this.bytes[this.at++];
      v += (b & 0x7f) * scale;
      scale *= 128;
    } while (b & 0x80);
    return v;
  }

  // int reads a number whose lowest bit is its sign.
  int() {
    const v = this.uint();
    return v % 2 ? -(v + 1) / 2 : v / 2;
  }

  // fixed reads a number of size bytes; one of 8 is a BigInt.
  fixed(size) {
    const b = this.bytes, at = this.at;
    this.at += size;
    switch (size) {
      case 1: return b[at];
      case 2: return b[at] | b[at + 1] << 8;
      case 4: return (b[at] | b[at + 1] << 8 | b[at + 2] << 16 | b[at + 3] << 24) >>> 0;
    }
    let v = 0n;
    for (let i = size - 1; i >= 0; i--) v = v << 8n | BigInt(b[at + i]);
    return v;
  }

  // text reads up to a zero byte.
  text() {
    const end = this.bytes.indexOf(0, this.at);
    const s = decoder.decode(this.bytes.subarray(this.at, end));
    this.at = end + 1;
    return s;
  }

  // texts reads all that is left.
  texts() {
    const all = decoder.decode(this.bytes.subarray(this.at)).split("\0");
    all.pop();
    return all;
  }

  get done() {
    return this.at >= this.bytes.length;
  }
}

const decoder = new TextDecoder();

// Indices of columns, as package report counts them.
const COL = { forms: 0, n1: 1, n2: 2, n4: 3, n8: 4, branches: 5, data: 6, blocks: 7, marks: 8, landings: 9, jumps: 10, boot: 11, count: 12 };
const OF_PROFILE = { verdicts: 0, addresses: 1, jumpCodes: 2, jumpAddresses: 3, count: 4 };
const ROW = { gap: 0, size: 1, insts: 2, name: 3, symbol: 4, section: 5, source: 6, flags: 7, count: 8 };
const ROW_OF_PROFILE = 16;
const COUNTS = ["insts", "probeable", "boosted", "stepped", "emulated", "ftrace", "refused", "hazards", "noted", "depends", "optimizable"];
const { flows: FLOWS, props: PROPS, marks: MARKS, textMarks: TEXT_MARKS, landings: LANDINGS } = meta.names;
const BASES = ["", "next", "inst", "page", "zero"];

// visible writes characters that a page would not show, or would show as others, as
// their numbers: names come from files that may want to mislead.
function visible(name) {
  return name.replace(/[\p{C}\p{Zl}\p{Zp}\ufffd]/gu, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
}

// File is one analyzed file. Addresses in it are distances from its origin, which are
// plain numbers; hex writes them out.
class File {
  constructor(number, about) {
    this.number = number;
    this.about = about;
    this.origin = BigInt(about.origin);
    this.blocks = new Map(); // unpacked, the one used last at the end
    this.profiles = about.profiles;
    this.book = about.book;
  }

  hex(addr) {
    return "0x" + this.absolute(addr).toString(16);
  }

  absolute(addr) {
    return BigInt.asUintN(64, this.origin + BigInt(addr));
  }

  // addressOf returns the distance of an address from the origin.
  addressOf(absolute) {
    return Number(BigInt.asIntN(64, absolute - this.origin));
  }

  async load() {
    const [table, dict] = await Promise.all([unpack(`f${this.number}t`), unpack(`f${this.number}d`)]);
    this.loadTable(table);
    this.loadForms(dict);
  }

  loadTable(c) {
    const n = this.about.functions;
    this.n = n;
    this.names = c[ROW.name].texts().map(visible);
    this.symbols = c[ROW.symbol].texts().map(visible);
    this.addr = new Float64Array(n);
    this.size = new Float64Array(n);
    this.insts = new Uint32Array(n);
    this.section = new Uint16Array(n);
    this.source = new Uint32Array(n);
    this.line = new Uint32Array(n);
    this.flags = c[ROW.flags].bytes;
    let at = 0;
    for (let i = 0; i < n; i++) {
      at += c[ROW.gap].uint();
      this.addr[i] = at;
      this.size[i] = c[ROW.size].uint();
      this.insts[i] = c[ROW.insts].uint();
      this.section[i] = c[ROW.section].uint();
      this.source[i] = c[ROW.source].uint();
      if (this.about.sources[this.source[i]]) this.line[i] = c[ROW.source].uint();
    }
    this.by = this.profiles.map((_, p) => this.loadCounts(c, ROW.count + ROW_OF_PROFILE * p));
    this.lower = this.names.map((s) => s.toLowerCase());
  }

  // loadCounts reads what a profile says of each function: an array for each count,
  // and lists of [rule, count].
  loadCounts(c, at) {
    const by = {};
    COUNTS.forEach((name, k) => {
      by[name] = new Uint32Array(this.n);
      for (let i = 0; i < this.n; i++) by[name][i] = c[at + k].uint();
    });
    by.returns = new Int32Array(this.n);
    for (let i = 0; i < this.n; i++) by.returns[i] = c[at + 11].uint() - 1;
    ["reasons", "jumpReasons", "hazardList"].forEach((name, k) => (by[name] = new Lists(this.n, c[at + 12 + k])));
    return by;
  }

  loadForms(c) {
    const [raw, len, flow, props, base, holes, text, kinds, targets, data, symbolAddrs, symbolNames] = c;
    this.holes = [];
    while (!kinds.done) {
      const n = kinds.byte();
      this.holes.push(kinds.bytes.subarray(kinds.at, kinds.at + n));
      kinds.at += n;
    }
    const n = len.bytes.length;
    const f = (this.forms = { n, len: len.bytes, flow: flow.bytes, base: base.bytes, raw: raw.bytes, start: new Uint32Array(n), props: new Uint16Array(n), holes: [], text: text.texts() });
    const shared = new Map(); // equal lists of holes
    f.sizes = new Uint8Array(4 * n); // of the numbers of a form in each column
    for (let i = 0, at = 0; i < n; i++) {
      f.start[i] = at;
      at += f.len[i];
      f.props[i] = props.uint();
      const from = holes.at;
      while (holes.byte());
      const key = String.fromCharCode(...holes.bytes.subarray(from, holes.at - 1));
      if (!shared.has(key)) shared.set(key, [...key].map((k) => k.charCodeAt(0) - 1));
      f.holes.push(shared.get(key));
      shared.get(key).forEach((h, k) => {
        const bits = this.holes[h].length;
        if (k > 0 || !(f.base[i] & 7)) f.sizes[4 * i + numberColumn(bits) - COL.n1] += numberSize(bits);
      });
    }
    this.targets = running(targets);
    this.data = running(data);
    this.symbolAddrs = running(symbolAddrs);
    this.symbolNames = symbolNames.texts().map(visible);
    this.expected = this.profiles.map((_, p) => {
      const column = c[12 + p], first = [];
      while (!column.done) first.push(column.uint() - 1);
      return first;
    });
  }

  // find returns the function that holds an address, -1 where none does.
  find(addr) {
    const i = lastAtOrBelow(this.addr, addr);
    return i >= 0 && (addr < this.addr[i] + this.size[i] || addr === this.addr[i]) ? i : -1;
  }

  // nameAt names an address as symbol+0x1c; empty where nothing is known of it.
  nameAt(addr) {
    let i = this.find(addr), name, start;
    if (i >= 0) {
      [name, start] = [this.names[i], this.addr[i]];
    } else {
      i = lastAtOrBelow(this.symbolAddrs, addr);
      if (i < 0) return "";
      [name, start] = [this.symbolNames[i], this.symbolAddrs[i]];
    }
    return addr === start ? name : `${name}+0x${(addr - start).toString(16)}`;
  }

  // code returns function i in full.
  async code(i) {
    let first = 0, b = 0;
    while (first + this.about.blocks[b] <= i) first += this.about.blocks[b++];
    let block = this.blocks.get(b);
    if (!block) {
      block = new Block(this, first, this.about.blocks[b], await unpack(`f${this.number}b${b}`));
      if (this.blocks.size >= 8) this.blocks.delete(this.blocks.keys().next().value);
    }
    this.blocks.delete(b);
    this.blocks.set(b, block);
    return block.code(i);
  }
}

// Lists are lists of pairs of numbers, one list for each function.
class Lists {
  constructor(n, column) {
    this.start = new Uint32Array(n + 1);
    const all = [];
    for (let i = 0; i < n; i++) {
      for (let k = column.uint(); k > 0; k--) all.push(column.uint(), column.uint());
      this.start[i + 1] = all.length;
    }
    this.all = Uint32Array.from(all);
  }

  // of returns the pairs of function i.
  of(i) {
    const pairs = [];
    for (let k = this.start[i]; k < this.start[i + 1]; k += 2) pairs.push([this.all[k], this.all[k + 1]]);
    return pairs;
  }

  // count returns the second number of the pair of function i that starts with key.
  count(i, key) {
    for (let k = this.start[i]; k < this.start[i + 1]; k += 2) if (this.all[k] === key) return this.all[k + 1];
    return 0;
  }
}

// running returns the sums of a column of differences.
function running(column) {
  const sums = [];
  let at = 0;
  while (!column.done) sums.push((at += column.int()));
  return sums;
}

// lastAtOrBelow returns the index of the last of ascending numbers that is no more
// than x, -1 where none is.
function lastAtOrBelow(list, x) {
  let lo = 0, hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (list[mid] <= x) lo = mid + 1;
    else hi = mid;
  }
  return lo - 1;
}

// Block is a run of functions. Verdicts are read at once, since what is expected of one
// depends on those before it; the rest of a function when it is asked for.
class Block {
  constructor(file, first, count, columns) {
    this.file = file;
    this.first = first;
    this.columns = columns;
    this.starts = []; // of each function, in each column
    this.instStart = [];
    let insts = 0;
    for (let i = first; i < first + count; i++) insts += file.insts[i];
    this.forms = new Uint32Array(insts);
    this.codes = file.profiles.map(() => ({ verdicts: new Uint16Array(insts), jumps: new Uint16Array(insts), last: new Map() }));
    let at = 0;
    for (let i = first; i < first + count; i++) {
      this.starts.push(columns.map((c) => c.at));
      this.instStart.push(at);
      this.index(at, file.insts[i]);
      at += file.insts[i];
    }
  }

  // index reads the codes of a function of n instructions, and goes over the rest.
  index(at, n) {
    const c = this.columns, { base, sizes } = this.file.forms;
    for (let i = at; i < at + n; i++) {
      const f = (this.forms[i] = c[COL.forms].uint());
      if (base[f] & 7 && c[COL.branches].int() === -1) c[COL.data].uint();
      for (let k = 0; k < 4; k++) c[COL.n1 + k].at += sizes[4 * f + k];
    }
    for (let k = c[COL.blocks].uint(); k > 0; k--) c[COL.blocks].uint();
    for (let k = 3 * c[COL.marks].uint(); k > 0; k--) c[COL.marks].uint();
    for (let k = c[COL.landings].uint(); k > 0; k--) {
      c[COL.landings].uint();
      c[COL.landings].byte();
      c[COL.landings].uint();
    }
    for (let k = c[COL.jumps].uint(); k > 0; k--) readJump(c[COL.jumps]);
    for (let k = c[COL.boot].uint(); k > 0; k--) c[COL.boot].uint();
    this.codes.forEach((codes, p) => this.indexVerdicts(p, codes, at, n));
  }

  indexVerdicts(p, codes, at, n) {
    const book = this.file.book, base = COL.count + OF_PROFILE.count * p;
    const column = this.columns[base + OF_PROFILE.verdicts];
    if (n > 0) {
      let run = column.uint();
      if (run % 2) {
        codes.verdicts.fill((run - 1) / 2, at, at + n);
      } else {
        run /= 2;
        for (let i = at; i < at + n; i++) {
          const form = this.forms[i];
          let v;
          if (run > 0) {
            run--;
            v = codes.last.get(form);
            if (v === undefined) v = this.file.expected[p][form];
          } else {
            v = column.uint();
            run = column.uint() / 2;
          }
          codes.last.set(form, v);
          codes.verdicts[i] = v;
        }
      }
    }
    for (let i = at; i < at + n; i++) {
      const v = book.verdicts[codes.verdicts[i]];
      for (let k = bitCount(v.has || 0); k > 0; k--) this.columns[base + OF_PROFILE.addresses].uint();
      if (v.rule >= 0 || !v.exec) continue;
      const j = book.jumps[(codes.jumps[i] = this.columns[base + OF_PROFILE.jumpCodes].uint())];
      if (j.has & 1) this.columns[base + OF_PROFILE.jumpAddresses].uint();
      if (j.has & 2) {
        this.columns[base + OF_PROFILE.jumpAddresses].uint();
        this.columns[base + OF_PROFILE.jumpAddresses].uint();
      }
    }
  }

  // code returns function i: its instructions, who lands where, and basic blocks.
  code(i) {
    const k = i - this.first, file = this.file;
    const c = this.columns.map((column, n) => new Column(column.bytes, this.starts[k][n]));
    const start = file.addr[i], n = file.insts[i];
    const code = { file, i, start, end: start + file.size[i], insts: [] };
    let at = start;
    for (let x = this.instStart[k]; x < this.instStart[k] + n; x++) {
      const form = this.forms[x];
      const inst = { addr: at, form, len: file.forms.len[form], flow: FLOWS[file.forms.flow[form]], props: file.forms.props[form], numbers: [], target: null };
      file.forms.holes[form].forEach((h, m) => {
        if (m === 0 && file.forms.base[form] & 7) {
          inst.target = readTarget(file, c, start);
          inst.numbers.push(null);
        } else {
          const bits = file.holes[h].length;
          inst.numbers.push(c[numberColumn(bits)].fixed(numberSize(bits)));
        }
      });
      code.insts.push(inst);
      at += inst.len;
    }
    readMarks(code, c);
    readLandings(code, c);
    readJumps(code, c);
    readBoot(code, c);
    readBasicBlocks(code, c);
    code.profiles = this.codes.map((codes, p) => readVerdicts(code, codes, this.instStart[k], c, COL.count + OF_PROFILE.count * p));
    return code;
  }
}

function numberSize(bits) {
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

function numberColumn(bits) {
  return bits <= 8 ? COL.n1 : bits <= 16 ? COL.n2 : bits <= 32 ? COL.n4 : COL.n8;
}

function bitCount(x) {
  let n = 0;
  for (; x; x &= x - 1) n++;
  return n;
}

function readTarget(file, c, start) {
  const v = c[COL.branches].int();
  if (v === -1) return file.data[c[COL.data].uint()];
  const odd = Math.abs(v % 2) === 1;
  return odd ? file.targets[(v - 1) / 2] : start + v / 2;
}

function readMarks(code, c) {
  code.marks = [];
  for (let k = c[COL.marks].uint(); k > 0; k--) {
    const addr = code.start + c[COL.marks].int();
    code.marks.push({ addr, end: addr + c[COL.marks].uint(), kind: c[COL.marks].uint() });
  }
}

// marksAt returns what tables of the file say of [lo, hi).
function marksAt(code, lo, hi, names = MARKS) {
  let kinds = 0;
  for (const m of code.marks) if (m.addr < hi && lo < m.end) kinds |= m.kind;
  return names.filter((m) => kinds & m.kind).map((m) => m.name);
}

function readLandings(code, c) {
  const column = c[COL.landings];
  code.landings = [];
  let at = code.start;
  for (let k = column.uint(); k > 0; k--) {
    at += column.uint();
    const kind = column.byte(), from = at + column.int();
    code.landings.push({ addr: at, kind, from });
  }
}

function readJump(column) {
  const jump = { inst: column.uint(), kind: column.byte(), what: column.uint(), table: column.int(), count: column.uint(), width: column.byte(), bound: column.byte(), targets: [] };
  for (let k = column.uint(); k > 0; k--) jump.targets.push(column.uint());
  return jump;
}

function readJumps(code, c) {
  code.jumps = [];
  for (let k = c[COL.jumps].uint(); k > 0; k--) {
    const jump = readJump(c[COL.jumps]);
    let at = code.start;
    jump.targets = jump.targets.map((gap) => (at += gap));
    jump.what = code.file.about.whats[jump.what];
    code.jumps.push(jump);
  }
}

function readBoot(code, c) {
  let i = 0;
  for (let k = c[COL.boot].uint(); k > 0; k--) {
    const v = c[COL.boot].uint();
    i += v >> 1;
    code.insts[i].boot = v & 1 ? "cpu" : "patched";
  }
}

function fallsThrough(inst) {
  return !(inst.props & PROPS.invalid) && (inst.flow === "none" || (inst.props & PROPS.conditional) !== 0);
}

function continues(inst) {
  return fallsThrough(inst) || ["call", "call-indirect", "syscall", "halt"].includes(inst.flow);
}

function endsBlock(inst) {
  return !continues(inst) || inst.flow === "halt" || (inst.props & PROPS.conditional) !== 0 && !inst.flow.startsWith("call");
}

// readBasicBlocks divides a function into basic blocks, with those that may follow.
function readBasicBlocks(code, c) {
  const insts = code.insts;
  code.index = new Map(insts.map((inst, i) => [inst.addr, i]));
  const starts = [];
  let told = c[COL.blocks].uint();
  if (told > 0) {
    for (let at = 0; told > 0; told--) {
      starts.push(at);
      at += c[COL.blocks].uint();
    }
  } else {
    const led = new Set(code.landings.map((l) => l.addr));
    for (const inst of insts) if (inst.target !== null && (inst.flow === "jump" || inst.flow === "jump-if")) led.add(inst.target);
    insts.forEach((inst, i) => {
      if (i === 0 || endsBlock(insts[i - 1]) || led.has(inst.addr)) starts.push(i);
    });
  }
  code.blocks = starts.map((from, b) => ({ number: b, from, to: starts[b + 1] ?? insts.length, next: [], previous: [], exits: [] }));
  for (const b of code.blocks) for (let i = b.from; i < b.to; i++) insts[i].block = b.number;
  for (const b of code.blocks) connect(code, b);
  for (const b of code.blocks) b.next.forEach((n) => code.blocks[n].previous.push(b.number));
}

// connect finds where a block leads, by its last instruction.
function connect(code, block) {
  const last = code.insts[block.to - 1];
  const next = new Set();
  const goTo = (addr, otherwise) => {
    const i = code.index.get(addr);
    if (i !== undefined) next.add(code.insts[i].block);
    else if (otherwise) block.exits.push(otherwise);
  };
  if (fallsThrough(last)) goTo(last.addr + last.len, "falls off the end");
  else if (continues(last)) goTo(last.addr + last.len, "");
  switch (last.flow) {
    case "jump":
    case "jump-if":
      if (last.target !== null) goTo(last.target, "leaves for another function");
      break;
    case "return":
      block.exits.push("returns");
      break;
    case "jump-indirect": {
      const jump = code.jumps.find((j) => j.inst === block.to - 1);
      if (!jump || jump.kind === 0) block.exits.push("jumps to what is not known");
      else if (jump.targets.length === 0) block.exits.push("jumps by a pointer");
      for (const addr of jump ? jump.targets : []) goTo(addr, "leaves for another function");
      break;
    }
    case "trap":
    case "halt":
      block.exits.push("stops");
      break;
  }
  if (last.props & PROPS.invalid) block.exits.push("stops");
  block.next = [...next].sort((a, b) => a - b);
}

// readVerdicts returns what a profile says of each instruction: {verdict, jump}, with
// addresses.
function readVerdicts(code, codes, first, c, base) {
  const book = code.file.book, addresses = c[base + OF_PROFILE.addresses], jumpAddresses = c[base + OF_PROFILE.jumpAddresses];
  const jumpLen = code.file.about.jumpLen;
  let culprit = code.start, movedTo = code.start, instead = code.start, last = code.start;
  return code.insts.map((inst, i) => {
    const verdict = { ...book.verdicts[codes.verdicts[first + i]] };
    if (verdict.has & 1) verdict.culprit = culprit += addresses.int();
    if (verdict.has & 2) verdict.movedTo = movedTo += addresses.int();
    if (verdict.has & 4) verdict.instead = instead += addresses.int();
    const counted = verdict.rule >= 0 || verdict.exec;
    if (verdict.rule >= 0 || !verdict.exec) return { verdict, jump: null, counted };
    const jump = { ...book.jumps[codes.jumps[first + i]] };
    if (jump.has & 1) jump.culprit = last += jumpAddresses.int();
    if (jump.ok) {
      [jump.region, jump.moved] = smallestRegion(code.insts, i, jumpLen);
      if (jump.has & 2) [jump.region, jump.moved] = [jumpAddresses.int(), jumpAddresses.int()];
    }
    return { verdict, jump, counted };
  });
}

// smallestRegion returns the sizes of the region of as few whole instructions as the
// jump needs: of all of it, and of what runs in the detour buffer.
function smallestRegion(insts, i, need) {
  let region = 0, moved = 0, dead = false;
  for (let j = i; region < need && j < insts.length; j++) {
    region += insts[j].len;
    if (!dead) {
      moved = region;
      dead = !fallsThrough(insts[j]);
    }
  }
  return [region, moved];
}
