"use strict";

// The map: a treemap of all functions, drawn on a canvas.

// METRICS are what functions are coloured by: the share of their instructions that…
const METRICS = {
  probeable: { name: "can be probed", of: "insts", count: (by, i) => by.probeable[i] },
  boosted: { name: "run boosted", of: "probeable", count: (by, i) => by.boosted[i] },
  optimizable: { name: "become jumps", of: "probeable", count: (by, i) => by.optimizable[i] },
  hazards: { name: "are hazardous", of: "probeable", count: (by, i) => by.hazards[i], bad: true },
};

// CLASSES of shares, each with a colour and a pattern.
const CLASSES = [
  { name: "none", holds: (s) => s === 0 },
  { name: "up to a third", holds: (s) => s <= 1 / 3 },
  { name: "up to two thirds", holds: (s) => s <= 2 / 3 },
  { name: "more", holds: (s) => s < 1 },
  { name: "all", holds: () => true },
];

const classOf = (share) => CLASSES.findIndex((c) => c.holds(share));

// groupName is the start of a function's name that functions of one part of a program
// have in common: tcp of tcp_v4_rcv, std::vector of std::vector<int>::push_back.
function groupName(name) {
  const padding = /^__(pfx|cfi)_/.exec(name); // before functions, in a kernel
  if (padding) return padding[0] + "…";
  if (/^\.[^+]*\+0x/.test(name)) return "no names";
  const bare = name.replace(/^[_.]+/, "").replace(/^(x64_|ia32_|arm64_|se_|do_|powerpc_)?(compat_)?sys_/, "sys_");
  const cpp = bare.indexOf("::");
  if (cpp > 0) return bare.slice(0, cpp).replace(/[<(].*/, "") + "::";
  const m = /^[A-Za-z0-9$]+?(?=[_.+(<]|$)/.exec(bare);
  return m ? m[0] : bare.slice(0, 8);
}

// treeOf divides the functions of a file: by folder and source file where lines tell,
// else by section and the start of the name.
function treeOf(file) {
  const root = { name: file.about.name, children: new Map() };
  const child = (node, name) => {
    if (!node.children.has(name)) node.children.set(name, { name, children: new Map() });
    return node.children.get(name);
  };
  const common = commonFolder(file.about.sources.filter(Boolean));
  for (let i = 0; i < file.n; i++) {
    const source = file.about.sources[file.source[i]];
    let node;
    if (source) node = source.slice(common).split("/").filter(Boolean).reduce(child, root);
    else node = child(child(root, file.about.sections[file.section[i]] || "(no section)"), groupName(file.names[i]));
    node.children.set(i, { leaf: i });
  }
  return settle(root);
}

// commonFolder returns the length of the folder that all paths start with.
function commonFolder(paths) {
  if (paths.length === 0) return 0;
  let n = paths[0].lastIndexOf("/") + 1;
  for (const p of paths) while (n > 0 && !p.startsWith(paths[0].slice(0, n))) n = paths[0].lastIndexOf("/", n - 2) + 1;
  return n;
}

// settle makes lists of children, puts small groups of names together, and leaves out
// groups that hold one group only.
function settle(node) {
  const few = 6;
  if (node.leaf !== undefined) return node;
  let children = [...node.children.values()].map(settle);
  const small = children.filter((c) => c.leaf === undefined && c.children.length < few && c.children.every((x) => x.leaf !== undefined));
  if (small.length > 1 && children.length > small.length) {
    children = children.filter((c) => !small.includes(c));
    children.push({ name: "other names", children: small.flatMap((c) => c.children) });
  }
  node.children = children;
  return node;
}

// TreeMap shows one group of the tree at a time. Groups are opened by Enter or a click,
// functions likewise; Escape goes back to the group above.
class TreeMap {
  constructor(file, p, metric, opts) {
    Object.assign(this, { file, p, metric, opts, selected: null, patterns: opts.patterns });
    file.tree = file.tree || d3.hierarchy(treeOf(file)).sum((d) => (d.leaf === undefined ? 0 : Math.max(1, file.insts[d.leaf]))).sort((a, b) => b.value - a.value);
    this.canvas = h("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "map of functions", "aria-describedby": "map-help", "aria-label": "Map of functions",
      onclick: (e) => this.open(this.at(e)), onmousemove: (e) => this.hover(e), onmouseleave: () => this.tell(null), onkeydown: (e) => this.key(e),
    });
    this.tip = h("div.tip", { hidden: true });
    this.trail = h("nav.trail", { "aria-label": "Group shown" });
    this.legend = h("ul.legend", { "aria-label": "Legend" });
    this.element = h("div.map", {}, this.trail, h("div.canvas", {}, this.canvas, this.tip), this.legend,
      h("p.help", { id: "map-help" }, "Arrow keys move, Enter opens a group or a function, Escape goes back to the group above. Areas are numbers of instructions."));
    this.node = file.tree;
    new ResizeObserver(() => this.layout()).observe(this.canvas.parentElement);
  }

  // shares returns [count, of] of a node.
  shares(node) {
    const by = this.file.by[this.p], m = METRICS[this.metric];
    if (node.data.leaf !== undefined) return [m.count(by, node.data.leaf), by[m.of][node.data.leaf]];
    const key = `${this.p} ${this.metric}`;
    node.sums = node.sums || {};
    if (!node.sums[key]) {
      const sum = [0, 0];
      node.each((d) => {
        if (d.data.leaf === undefined) return;
        sum[0] += m.count(by, d.data.leaf);
        sum[1] += by[m.of][d.data.leaf];
      });
      node.sums[key] = sum;
    }
    return node.sums[key];
  }

  layout() {
    const box = this.canvas.parentElement.getBoundingClientRect();
    const w = Math.floor(box.width), ht = Math.floor(box.height);
    if (w < 10 || ht < 10) return;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = w * scale;
    this.canvas.height = ht * scale;
    this.scale = scale;
    this.place(w, ht);
    this.draw();
  }

  // place gives each node of the group shown its rectangle.
  place(w, ht) {
    const shown = this.node;
    const tile = d3.treemapSquarify;
    const give = (node, x0, y0, x1, y1, depth) => {
      Object.assign(node, { x0, y0, x1, y1 });
      if (!node.children) return;
      const pad = depth < 2 ? 2 : 0.5;
      const head = depth > 0 && x1 - x0 > 40 && y1 - y0 > 34 ? 17 : 0;
      node.head = head;
      if (x1 - x0 < 3 || y1 - y0 < 3) {
        node.tiny = true;
        return;
      }
      node.tiny = false;
      tile(node, x0 + (depth ? 1 : 0), y0 + head, x1 - (depth ? 1 : 0), y1 - (depth ? 1 : 0));
      for (const c of node.children) {
        const p = Math.min(pad / 2, (c.x1 - c.x0) / 4, (c.y1 - c.y0) / 4);
        give(c, c.x0 + p, c.y0 + p, c.x1 - p, c.y1 - p, depth + 1);
      }
    };
    give(shown, 0, 0, w, ht, 0);
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    const kind = METRICS[this.metric].bad ? "bad" : "share";
    return { fill: CLASSES.map((_, k) => get(`--${kind}-${k}`)), text: CLASSES.map((_, k) => get(`--${kind}-text-${k}`)), back: get("--back"), head: get("--head"), ink: get("--ink"), line: get("--line"), focus: get("--focus") };
  }

  draw() {
    const g = this.canvas.getContext("2d");
    g.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    const c = (this.palette = this.colours());
    g.fillStyle = c.back;
    g.fillRect(0, 0, this.canvas.width, this.canvas.height);
    g.textBaseline = "middle";
    this.paint(g, this.node, 0);
    this.frame(g);
    this.drawTrail();
    this.drawLegend();
  }

  paint(g, node, depth) {
    const w = node.x1 - node.x0, ht = node.y1 - node.y0;
    if (w < 0.4 || ht < 0.4) return;
    if (node.children && !node.tiny) {
      if (depth > 0) {
        g.fillStyle = this.palette.head;
        g.fillRect(node.x0, node.y0, w, ht);
      }
      if (node.head) this.label(g, node, node.data.name, this.palette.ink, node.head, depth < 2 ? 600 : 400);
      for (const child of node.children) this.paint(g, child, depth + 1);
      return;
    }
    const [n, of] = this.shares(node);
    const k = of ? classOf(n / of) : 0;
    g.fillStyle = this.palette.fill[k];
    g.fillRect(node.x0, node.y0, w, ht);
    if (this.patterns) this.hatch(g, node, k);
    if (w > 46 && ht > 15) this.leafLabel(g, node, n, of, k);
  }

  // hatch draws the pattern of a class: more lines for a larger share.
  hatch(g, node, k) {
    const step = [0, 12, 8, 5, 3][k], w = node.x1 - node.x0, ht = node.y1 - node.y0;
    if (!step || w < 3 || ht < 3) return;
    g.save();
    g.beginPath();
    g.rect(node.x0, node.y0, w, ht);
    g.clip();
    g.strokeStyle = this.palette.text[k];
    g.globalAlpha = 0.35;
    g.lineWidth = 1;
    g.beginPath();
    for (let x = Math.floor((node.x0 - ht) / step) * step; x < node.x1; x += step) {
      g.moveTo(x, node.y1);
      g.lineTo(x + ht, node.y0);
    }
    g.stroke();
    g.restore();
  }

  label(g, node, text, colour, height, weight) {
    g.font = `${weight} 11.5px system-ui, sans-serif`;
    g.fillStyle = colour;
    const room = node.x1 - node.x0 - 8;
    const fitted = fit(g, text, room);
    if (fitted) g.fillText(fitted, node.x0 + 4, node.y0 + height / 2 + 0.5);
  }

  leafLabel(g, node, n, of, k) {
    const w = node.x1 - node.x0 - 8, ht = node.y1 - node.y0;
    const name = node.data.leaf !== undefined ? this.file.names[node.data.leaf] : node.data.name;
    g.font = "11.5px system-ui, sans-serif";
    const fitted = fit(g, name, w);
    if (!fitted) return;
    const two = ht > 32;
    if (this.patterns) {
      g.fillStyle = this.palette.fill[k];
      g.fillRect(node.x0 + 2, node.y0 + 2, Math.min(w + 4, g.measureText(fitted).width + 6), two ? 28 : 13);
    }
    g.fillStyle = this.palette.text[k];
    g.fillText(fitted, node.x0 + 4, node.y0 + (two ? 10 : Math.min(ht / 2, 10)));
    if (two) {
      g.globalAlpha = 0.85;
      g.fillText(fit(g, of ? percent(n, of) : "–", w), node.x0 + 4, node.y0 + 24);
      g.globalAlpha = 1;
    }
  }

  frame(g) {
    const d = this.selected;
    if (!d) return;
    g.lineWidth = 3;
    g.strokeStyle = this.palette.focus;
    g.strokeRect(d.x0 + 1.5, d.y0 + 1.5, Math.max(2, d.x1 - d.x0 - 3), Math.max(2, d.y1 - d.y0 - 3));
  }

  drawTrail() {
    const path = this.node.ancestors().reverse();
    this.trail.replaceChildren(...path.map((d, i) => (i === path.length - 1
      ? h("span", { "aria-current": "true" }, d.data.name)
      : h("button.link", { type: "button", onclick: () => this.zoom(d) }, d.data.name))).flatMap((e, i) => (i ? [h("i", { "aria-hidden": "true" }, "›"), e] : [e])));
    const [n, of] = this.shares(this.node);
    this.trail.append(h("span.sum", {}, `${percent(n, of)} ${METRICS[this.metric].name}`));
  }

  drawLegend() {
    this.legend.replaceChildren(h("li.title", {}, `Share of instructions that ${METRICS[this.metric].name}${METRICS[this.metric].of === "probeable" ? ", of those that can be probed" : ""}:`),
      ...CLASSES.map((c, k) => h("li", {}, this.swatch(k), c.name)));
  }

  swatch(k) {
    const canvas = h("canvas.swatch", { width: 40, height: 28, "aria-hidden": "true" });
    const g = canvas.getContext("2d");
    g.scale(2, 2);
    g.fillStyle = this.palette.fill[k];
    g.fillRect(0, 0, 20, 14);
    if (this.patterns) this.hatch(g, { x0: 0, y0: 0, x1: 20, y1: 14 }, k);
    return canvas;
  }

  // at returns the node that an event of the mouse is over: a group's own where it is
  // over its head, else the function.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let node = this.node;
    for (;;) {
      const inside = node.children && !node.tiny && node.children.find((c) => x >= c.x0 && x < c.x1 && y >= c.y0 && y < c.y1);
      if (!inside) return node === this.node ? null : node;
      node = inside;
      if (node.head && y < node.y0 + node.head) return node;
    }
  }

  hover(event) {
    const node = this.at(event);
    this.tell(node);
    if (!node) return;
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    this.tip.style.left = `${Math.min(x + 14, box.width - this.tip.offsetWidth - 4)}px`;
    this.tip.style.top = `${y + 18 + this.tip.offsetHeight > box.height ? y - this.tip.offsetHeight - 10 : y + 18}px`;
  }

  describe(node) {
    const by = this.file.by[this.p];
    const name = node.data.leaf !== undefined ? this.file.names[node.data.leaf] : node.data.name;
    const what = [plural(node.value, "instruction")];
    if (node.data.leaf === undefined) what.unshift(plural(node.leaves().length, "function"));
    for (const [key, m] of Object.entries(METRICS)) {
      if (key === "optimizable" && !this.file.profiles[this.p].optimized) continue;
      let n = 0, of = 0;
      if (node.data.leaf !== undefined) [n, of] = [m.count(by, node.data.leaf), by[m.of][node.data.leaf]];
      else {
        const own = this.metric;
        this.metric = key;
        [n, of] = this.shares(node);
        this.metric = own;
      }
      if (key !== "hazards" || n) what.push(`${percent(n, of)} ${m.name}`);
    }
    return [name, what.join(", ")];
  }

  tell(node) {
    this.tip.hidden = !node;
    if (node) {
      const [name, what] = this.describe(node);
      this.tip.replaceChildren(h("b", {}, name), h("br"), what);
    }
  }

  // open shows a group, or a function on its own page.
  open(node) {
    if (!node) return;
    if (node.data.leaf !== undefined) {
      this.opts.open(node.data.leaf);
      return;
    }
    // A small one is shown with its surroundings first.
    let to = node;
    while (to.parent && to.parent !== this.node && to.tiny) to = to.parent;
    this.zoom(to);
  }

  zoom(node) {
    const from = this.node;
    this.node = node;
    this.selected = null;
    this.tip.hidden = true;
    this.layout();
    if (node.ancestors().length < from.ancestors().length) this.choose(from.ancestors().find((a) => a.parent === node));
    const [name, what] = this.describe(node);
    say(`${name}: ${what}`);
    if (this.opts.zoomed) this.opts.zoomed(node);
  }

  choose(node) {
    if (!node) return;
    this.selected = node;
    this.draw();
    const [name, what] = this.describe(node);
    this.canvas.setAttribute("aria-label", `${name}: ${what}`);
    say(`${name}: ${what}`);
    this.tell(node);
    this.tip.style.left = `${Math.max(0, Math.min(node.x0 + 6, this.canvas.clientWidth - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${node.y1 + this.tip.offsetHeight + 6 < this.canvas.clientHeight ? node.y1 + 6 : Math.max(0, node.y0 - this.tip.offsetHeight - 6)}px`;
  }

  key(event) {
    const siblings = this.node.children || [];
    const d = this.selected;
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (step) {
      event.preventDefault();
      this.choose(d ? nearest(siblings, d, step) || d : siblings[0]);
    } else if (event.key === "Enter" && d) {
      event.preventDefault();
      this.open(d);
    } else if ((event.key === "Escape" || event.key === "Backspace") && this.node.parent) {
      event.preventDefault();
      this.zoom(this.node.parent);
    }
  }
}

// nearest returns the node beside d in a direction.
function nearest(nodes, d, [dx, dy]) {
  const cx = (d.x0 + d.x1) / 2, cy = (d.y0 + d.y1) / 2;
  let best = null, least = Infinity;
  for (const n of nodes) {
    const x = (n.x0 + n.x1) / 2 - cx, y = (n.y0 + n.y1) / 2 - cy;
    const along = x * dx + y * dy, across = Math.abs(x * dy) + Math.abs(y * dx);
    if (n === d || along <= 0.5) continue;
    const far = along + 2 * across;
    if (far < least) [best, least] = [n, far];
  }
  return best;
}

// fit shortens a text to a width; it is empty where nothing sensible fits.
function fit(g, text, room) {
  if (room < 14) return "";
  if (g.measureText(text).width <= room) return text;
  let lo = 0, hi = text.length;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (g.measureText(text.slice(0, mid) + "…").width <= room) lo = mid;
    else hi = mid - 1;
  }
  return lo >= 3 ? text.slice(0, lo) + "…" : "";
}
