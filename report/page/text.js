"use strict";

// The text and the bytes of instructions, from their forms and numbers.

const HEX = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"));

// distance returns the bits of the target's distance.
function distance(file, inst) {
  const forms = file.forms, shift = BigInt(forms.base[inst.form] >> 3);
  const bits = file.holes[forms.holes[inst.form][0]].length;
  const at = file.absolute(inst.addr);
  const from = { next: at + BigInt(inst.len), inst: at, page: at & ~0xfffn, zero: 0n }[BASES[forms.base[inst.form] & 7]];
  return BigInt.asUintN(bits, BigInt.asUintN(64, file.absolute(inst.target) - from) >> shift);
}

// numberOf returns the number in hole k, without sign.
function numberOf(file, inst, k) {
  return inst.numbers[k] === null ? distance(file, inst) : BigInt(inst.numbers[k]);
}

// bytesOf returns the bytes of an instruction in hexadecimal.
function bytesOf(file, inst) {
  const forms = file.forms, start = forms.start[inst.form];
  const raw = forms.raw.slice(start, start + inst.len);
  forms.holes[inst.form].forEach((h, k) => {
    const v = numberOf(file, inst, k);
    file.holes[h].forEach((bit, i) => {
      if (v >> BigInt(i) & 1n) raw[bit >> 3] |= 1 << (bit & 7);
    });
  });
  return [...raw].map((b) => HEX[b]);
}

// textOf returns the parts of an instruction's text: strings, and the target as
// {target, text}.
function textOf(file, inst) {
  const pieces = file.forms.text[inst.form].split("\x01");
  const parts = [pieces[0]];
  for (const piece of pieces.slice(1)) {
    const k = piece.charCodeAt(1) - 48, format = piece[0];
    if (format === "t") parts.push({ target: inst.target, text: file.hex(inst.target) });
    else parts.push(numberText(file, inst, k, format));
    parts.push(piece.slice(2));
  }
  return parts.filter((p) => p !== "");
}

function numberText(file, inst, k, format) {
  const bits = file.holes[file.forms.holes[inst.form][k]].length;
  let v = BigInt.asIntN(bits, numberOf(file, inst, k));
  if (inst.numbers[k] === null) v <<= BigInt(file.forms.base[inst.form] >> 3);
  if (format === "s") return (v < 0n ? "-0x" : "0x") + (v < 0n ? -v : v).toString(16);
  const width = { q: 64, l: 32, w: 16, b: 8 }[format];
  return "0x" + BigInt.asUintN(width, v).toString(16);
}

// plainText returns the text of an instruction as one string, with names.
function plainText(file, inst) {
  return textOf(file, inst).map((p) => {
    if (typeof p === "string") return p;
    const name = file.nameAt(p.target);
    return name ? `${p.text} <${name}>` : p.text;
  }).join("");
}
