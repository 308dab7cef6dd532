// SPDX-License-Identifier: CC-BY-4.0
//
// Stencil: letters with gaps for text that is not there yet.
// Belongs to the teaching material of crumb-nb, and may go anywhere
// with that name attached.

"use strict";

const OPEN = "{{";
const CLOSE = "}}";

/** A mistake in a stencil, with the line where it was made. */
class StencilError extends Error {
  constructor(message, line) {
    super(`${message} (line ${line})`);
    this.name = "StencilError";
    this.line = line;
  }
}

const filters = new Map();

/** Decorate a function as a filter: `filter("upper")(s => s.toUpperCase())`. */
function filter(name) {
  return (apply) => {
    if (filters.has(name)) {
      throw new Error(`two filters called ${name}`);
    }
    filters.set(name, apply);
    return apply;
  };
}

filter("upper")((text) => text.toUpperCase());
filter("trim")((text) => text.trim());
filter("quote")((text) => `“${text}”`);

class Stencil {
  static Piece = class {
    constructor(line) {
      this.line = line;
    }

    write() {
      throw new Error("a bare piece cannot be written");
    }
  };

  static Plain = class extends Stencil.Piece {
    constructor(line, text) {
      super(line);
      this.text = text;
    }

    write() {
      return this.text;
    }
  };

  static Gap = class extends Stencil.Piece {
    constructor(line, path, chain) {
      super(line);
      this.path = path;
      this.chain = chain;
    }

    write(values) {
      let found = values;
      for (const key of this.path) {
        if (found === null || found === undefined || !Object.hasOwn(Object(found), key)) {
          throw new StencilError(`nothing given for ${this.path.join(".")}`, this.line);
        }
        found = found[key];
      }
      return this.chain.reduce((text, name) => filters.get(name)(text), String(found));
    }
  };

  static Loop = class extends Stencil.Piece {
    constructor(line, name, list, body) {
      super(line);
      this.name = name;
      this.list = list;
      this.body = body;
    }

    write(values) {
      const items = values[this.list];
      if (!Array.isArray(items)) {
        throw new StencilError(`${this.list} is not a list`, this.line);
      }
      return items
        .map((item) => {
          const inner = { ...values, [this.name]: item };
          return this.body.map((piece) => piece.write(inner)).join("");
        })
        .join("");
    }
  };

  constructor(source) {
    this.pieces = parse(source);
  }

  fill(values) {
    return this.pieces.map((piece) => piece.write(values)).join("");
  }
}

/**
 * Cut a source text into pieces.
 *
 * Loops nest, so a stack holds the bodies that are still open. Line numbers are counted as the
 * text is passed over and belong to the place where a piece begins.
 */
function parse(source) {
  const root = [];
  const stack = [{ body: root, line: 1, name: null, list: null }];
  let line = 1;
  let at = 0;

  while (at < source.length) {
    const start = source.indexOf(OPEN, at);
    const plain = source.slice(at, start === -1 ? source.length : start);
    if (plain !== "") {
      stack.at(-1).body.push(new Stencil.Plain(line, plain));
      line += plain.split("\n").length - 1;
    }
    if (start === -1) {
      break;
    }

    const end = source.indexOf(CLOSE, start + OPEN.length);
    if (end === -1) {
      throw new StencilError("a gap is opened and never closed", line);
    }
    const inside = source.slice(start + OPEN.length, end).trim();
    at = end + CLOSE.length;

    const loop = /^each (\w+) of (\w+)$/.exec(inside);
    if (loop) {
      stack.push({ body: [], line, name: loop[1], list: loop[2] });
      continue;
    }
    if (inside === "end") {
      if (stack.length === 1) {
        throw new StencilError("an end without a loop", line);
      }
      const done = stack.pop();
      stack.at(-1).body.push(new Stencil.Loop(done.line, done.name, done.list, done.body));
      continue;
    }

    const [path, ...chain] = inside.split("|").map((part) => part.trim());
    if (!/^\w+(\.\w+)*$/.test(path)) {
      throw new StencilError(`cannot read the gap “${inside}”`, line);
    }
    for (const name of chain) {
      if (!filters.has(name)) {
        throw new StencilError(`no filter called ${name}`, line);
      }
    }
    stack.at(-1).body.push(new Stencil.Gap(line, path.split("."), chain));
    line += inside.split("\n").length - 1;
  }

  if (stack.length > 1) {
    throw new StencilError("a loop has no end", stack.at(-1).line);
  }
  return root;
}

module.exports = { Stencil, StencilError, filter };
