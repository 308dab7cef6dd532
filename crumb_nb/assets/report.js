"use strict";
// Sorting, filtering and the drill-down of the report. Text of data only ever becomes a text node.
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const make = (tag, css, ...inside) => {
    const node = document.createElement(tag);
    if (css) node.className = css;
    node.append(...inside.filter((x) => x !== null && x !== undefined && x !== ""));
    return node;
  };

  // ---- theme
  const button = one("#theme");
  const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = dark() ? "light theme" : "dark theme"; };
  try { const kept = localStorage.getItem("crumb-theme"); if (kept) document.documentElement.dataset.theme = kept; } catch (e) { /* no storage for this page */ }
  button.hidden = false;
  name();
  button.addEventListener("click", () => {
    const next = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("crumb-theme", next); } catch (e) { /* not kept, then */ }
    name();
  });

  // ---- tables
  const number = (text) => {
    const found = /^\s*([-−+]?)(\d[\d,]*\.?\d*|\.\d+)/.exec(text);
    return found ? (found[1] === "-" || found[1] === "−" ? -1 : 1) * Number(found[2].replaceAll(",", "")) : NaN;
  };
  const compare = (a, b, numeric) => numeric ? number(a) - number(b) : a.localeCompare(b, "en", { numeric: true, sensitivity: "base" });
  const empty = (text) => text === "" || text === "–";

  const sortable = (table) => {
    const body = table.tBodies[0], original = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      const text = (row) => row.cells[column].textContent.trim();
      const filled = original.map(text).filter((t) => !empty(t));
      const numeric = filled.length > 0 && filled.every((t) => !Number.isNaN(number(t)));
      const press = make("button", "", ...head.childNodes);
      press.type = "button";
      head.replaceChildren(press);
      head.classList.add("sortable");
      press.addEventListener("click", () => {
        const steps = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
        const next = steps[steps.indexOf(head.getAttribute("aria-sort")) + 1] || "";
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        const rows = original.slice();
        if (next) {
          head.setAttribute("aria-sort", next);
          const way = next === "ascending" ? 1 : -1;
          rows.sort((r, s) => empty(text(r)) - empty(text(s)) || way * compare(text(r), text(s), numeric));
        }
        body.append(...rows);
      });
    });
  };

  const filterable = (table, around) => {
    const rows = Array.from(table.tBodies[0].rows);
    if (rows.length < 6) return;
    const box = make("input"), count = make("span", "soft small");
    box.type = "search";
    box.placeholder = "words that a row must have";
    count.setAttribute("role", "status");
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row) => {
        const text = Array.from(row.cells, (c) => c.textContent).join(" ").toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
    });
    around.before(make("p", "tools", make("label", "small", "filter", box), count));
  };
  all("table.data").forEach((table) => { sortable(table); filterable(table, table.closest(".scroll") || table); });

  // ---- drill-down
  const data = one("#boards");
  if (!data) return;
  const boards = JSON.parse(data.textContent), root = one("#board"), MOST = 200;
  const COMMON = new Set("the and for with that this from are was were been has have had not but you your his her its our their they she him who what when where which why how did does can could will would should into than then them there here about any all out one two".split(" "));
  const stem = (word) => word.replace(/(?:'s|ing|ed|es|s)$/u, "");
  const words = (text) => new Set((text.toLowerCase().match(/[\p{L}\p{N}']+/gu) || []).filter((w) => (w.length > 2 || /\p{N}/u.test(w)) && !COMMON.has(w)).map(stem).filter((w) => w.length > 1 || /\p{N}/u.test(w)));
  const marked = (text, wanted) => {
    const out = [];
    let last = 0;
    for (const found of text.matchAll(/[\p{L}\p{N}']+/gu)) {
      if (!wanted.has(stem(found[0].toLowerCase()))) continue;
      out.push(text.slice(last, found.index), make("mark", "", found[0]));
      last = found.index + found[0].length;
    }
    out.push(text.slice(last));
    return out;
  };
  const show = (value) => value === null || value === undefined ? "–" : Number.isInteger(value) ? String(value) : value.toFixed(3);
  const signed = (value) => value === null ? "–" : value > 0 ? `+${show(value)}` : value < 0 ? `−${show(-value)}` : "0";

  const choose = (label, choices) => {
    const select = make("select");
    choices.forEach((text, n) => { const option = make("option", "", text); option.value = n; select.append(option); });
    return [select, make("label", "", label, select)];
  };
  const options = (select, choices, chosen) => {
    select.replaceChildren(...choices.map((text, n) => { const option = make("option", "", text); option.value = n; return option; }));
    select.value = String(chosen);
  };
  const [where, whereLabel] = choose("collection", boards.map((b) => b.collection));
  const [first, firstLabel] = choose("system A", []);
  const [second, secondLabel] = choose("system B", []);
  const [measure, measureLabel] = choose("measure", []);
  const [order, orderLabel] = choose("order", ["largest difference first", "A better first", "B better first"]);
  const words_ = make("input");
  words_.type = "search";
  words_.placeholder = "words of the query";
  where.id = "drill-collection"; first.id = "drill-a"; second.id = "drill-b"; measure.id = "drill-measure"; order.id = "drill-order"; words_.id = "drill-filter";
  const about = make("p", "soft small"), verdict = make("p", "text"), list = make("div");
  verdict.setAttribute("role", "status");
  root.replaceChildren(make("div", "chooser", whereLabel, firstLabel, secondLabel, measureLabel, orderLabel, make("label", "", "filter", words_)), about, verdict, list);

  const mean = (board, system, m) => {
    const values = board.queries.map((q) => q[4][system][m]).filter((v) => v !== null);
    return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
  };

  const hit = (board, [doc, score, counted, label], rank, wanted) => {
    const [id, path, text] = board.documents[doc];
    const relevant = label !== null && label > 0;
    const state = label === null ? null : make("span", relevant ? "verdict ok" : "verdict", relevant ? `relevant${label === 1 ? "" : ` (${label})`}` : "judged not relevant");
    const meta = make("div", "meta", make("span", "", `${rank}.`), make("span", "id", counted ? `${counted} ← ${id}` : id), score === null ? null : make("span", "", `score ${Number(score.toPrecision(5))}`), state);
    return make("li", relevant ? "relevant" : "", meta, path ? make("div", "path", path) : null, make("p", "", ...marked(text, wanted)));
  };

  const side = (board, system, query, letter, m, wanted) => {
    const top = query[5][system], heading = make("h4", "", `${letter}: ${board.systems[system].name}`);
    const facts = make("p", "soft small", `${board.measures[m]} ${show(query[4][system][m])}; ${board.systems[system].depths}`);
    const hits = top === null ? make("p", "soft", "this system's first ten were not kept for this query") : top.length ? make("ol", "hits", ...top.map((row, n) => hit(board, row, n + 1, wanted))) : make("p", "soft", "nothing returned");
    return make("div", "side", heading, facts, hits);
  };

  const fill = (body, board, query, a, b, m) => {
    const wanted = words(query[1]), [, , gold, relevant] = query;
    const listed = make("ol", "hits", ...gold.map(([doc, label], n) => hit(board, [doc, null, "", label], n + 1, wanted)));
    const title = `${relevant} relevant ${relevant === 1 ? "document" : "documents"}${relevant > gold.length ? `, the first ${gold.length}` : ""}`;
    const fold = make("details", "gold", make("summary", "", title), listed);
    fold.open = gold.length <= 3;
    body.replaceChildren(make("p", "soft small", "query ", make("span", "id", query[0])), fold, make("div", "sides", side(board, a, query, "A", m, wanted), side(board, b, query, "B", m, wanted)));
  };

  const draw = () => {
    const board = boards[Number(where.value)], [a, b, m] = [first, second, measure].map((s) => Number(s.value));
    const wanted = words_.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = board.queries.map((q) => ({ query: q, a: q[4][a][m], b: q[4][b][m] })).map((r) => ({ ...r, gap: r.a === null || r.b === null ? null : r.a - r.b }));
    const key = [(r) => -Math.abs(r.gap ?? 0), (r) => -(r.gap ?? 0), (r) => r.gap ?? 0][Number(order.value)];
    const top = rows.map((r, n) => [r, n]).sort((x, y) => key(x[0]) - key(y[0]) || x[1] - y[1]).map((x) => x[0]).filter((r) => wanted.every((w) => (r.query[0] + " " + r.query[1]).toLowerCase().includes(w))).slice(0, MOST);
    const better = rows.filter((r) => r.gap > 0).length, worse = rows.filter((r) => r.gap < 0).length;
    const whole = board.shown === board.total ? `all ${board.total} queries` : `the ${board.shown} of ${board.total} queries that this page holds`;
    about.textContent = board.about;
    verdict.textContent = `${board.measures[m]}: A ${show(mean(board, a, m))}, B ${show(mean(board, b, m))} on average over ${whole}. A is better on ${better}, B on ${worse}, they are equal on ${rows.length - better - worse}. ${top.length} listed.`;
    const heads = make("div", "heads", make("span"), make("span", "", "A"), make("span", "", "B"), make("span", "", "A − B"), make("span", "", "query"));
    list.replaceChildren(heads, ...top.map((r) => {
      const summary = make("summary", "", make("span", "", show(r.a)), make("span", "", show(r.b)), make("span", "gap", signed(r.gap)), make("span", "clip", r.query[1]));
      const body = make("div"), item = make("details", "query", summary, body);
      item.addEventListener("toggle", () => { if (item.open && !body.firstChild) fill(body, board, r.query, a, b, m); });
      return item;
    }));
  };

  const start = (n) => {
    const board = boards[n];
    where.value = String(n);
    const m = Math.max(0, board.measures.indexOf(board.primary));
    const ranked = board.systems.map((s, i) => [mean(board, i, m) ?? -1, i]).sort((x, y) => y[0] - x[0] || x[1] - y[1]);
    const names = board.systems.map((s) => s.name);
    options(first, names, ranked[0][1]);
    options(second, names, ranked[ranked.length - 1][1]);
    options(measure, board.measures, m);
    draw();
  };
  where.addEventListener("change", () => start(Number(where.value)));
  [first, second, measure, order].forEach((select) => select.addEventListener("change", draw));
  words_.addEventListener("input", draw);
  all("a[data-board]").forEach((link) => link.addEventListener("click", () => start(Number(link.dataset.board))));
  start(0);
})();
