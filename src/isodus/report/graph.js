"use strict";
// The graph of interacting variables, drawn on SVG from the data in the page. Data become text nodes, never markup.
const report = JSON.parse(document.getElementById("data").textContent);
const columns = Object.entries(report.terms);  // terms come by column
const termAt = (k) => Object.fromEntries(columns.map(([name, all]) => [name, all[k]]));
report.terms = columns.length ? columns[0][1].map((_, k) => termAt(k)) : [];
const SVG = "http://www.w3.org/2000/svg";

function short(name, most) {
  const text = Array.from(String(name).replace(/[\s\u0000-\u001f]+/g, " ").trim());
  if (text.length <= most) return text.join("");
  const keep = most - 1, tail = Math.floor(keep / 2);
  return text.slice(0, keep - tail).join("") + "…" + (tail ? text.slice(-tail).join("") : "");
}

function number(value, digits = 3) {
  if (value === null) return "";
  const text = Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5 || value === 0
    ? String(Number(value.toPrecision(digits))) : value.toExponential(digits - 1);
  return text.replaceAll("-", "−");
}

const raised = (power) => String(power).replace(/./g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]);
const termText = (term) => term.powers.map(([v, k]) => short(report.names[v], 24) + (k > 1 ? raised(k) : "")).join("·");
const sureness = (q) => q === null ? "not tested" : q < 1e-4 ? "q < 0.0001" : "q = " + number(q, 2);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function shape(tag, attributes = {}) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function drawGraph(graph) {
  const byId = (id) => document.getElementById(id);
  const canvas = byId("canvas"), about = byId("about"), tip = byId("tip");
  const slider = byId("threshold"), select = byId("variable"), onlySure = byId("only-sure");
  const strongest = Math.max(...graph.sets.map((set) => set.strength));
  const place = new Map(graph.nodes.map((node, k) => [node.v, k]));
  const order = graph.nodes.map((node, k) => k).sort((a, b) => turn(graph.nodes[a]) - turn(graph.nodes[b]));
  const svg = shape("svg", {role: "group", "aria-label": "Graph of interacting variables"});
  const world = shape("g");
  let chosen = null, focus = order[0], zoom = 1, dx = 0, dy = 0, width = 0, height = 0;
  let setShapes = [], nodeShapes = [];

  function turn(node) { return (Math.atan2(node.x, node.y) + 2 * Math.PI) % (2 * Math.PI); }

  const least = () => strongest * (slider.value / 100) ** 2;
  const visible = (set) => set.strength >= least() && (!onlySure.checked || (set.q !== null && set.q < report.level));
  const unsure = (set) => set.q !== null && set.q >= report.level;
  const signOf = (set) => set.sign > 0 ? "plus" : set.sign < 0 ? "minus" : "none";
  const setName = (set, most = 24) => set.v.map((v) => short(report.names[v], most)).join(" – ");

  function draw() {
    const n = graph.nodes.length;
    width = Math.max(300, Math.min(canvas.clientWidth || 700, 860));
    const level = n <= 12 && width > 480;  // few names are horizontal
    const most = width < 480 ? 11 : 18;
    const longest = Math.max(...graph.nodes.map((node) => Array.from(short(report.names[node.v], most)).length));
    const guess = Math.min(longest * 7 + 22, 0.26 * width);
    const radius = Math.min(width / 2 - Math.max(guess, 30), 130 + 8 * n);
    const size = Math.max(5.5, Math.min(13, 2 * Math.PI * (radius + 8) / n * 0.92));
    height = 2 * (radius + (level ? 42 : Math.max(guess, 30)));
    const dot = Math.max(2.5, Math.min(9, 130 / n + 1.5));
    const widest = Math.max(2, Math.min(6, 7 - 0.04 * graph.sets.length));
    const at = graph.nodes.map((node) => [radius * node.x, -radius * node.y]);
    world.replaceChildren();
    setShapes = graph.sets.map((set, k) => drawSet(set, k, at, radius, widest));
    nodeShapes = graph.nodes.map((node, k) => drawNode(node, k, at[k], dot, size, level, most));
    for (let k = setShapes.length - 1; k >= 0; k--) world.append(setShapes[k]);  // strong ones on top
    for (const k of order) world.append(nodeShapes[k]);
    svg.replaceChildren(world);
    canvas.replaceChildren(svg);
    frame();
    refresh();
  }

  function drawSet(set, k, at, radius, widest) {
    const group = shape("g", {class: "set", "data-set": k});
    const thick = 0.7 + (widest - 0.7) * set.strength / strongest;
    const points = set.v.map((v) => at[place.get(v)]);
    let path;
    if (set.at === null) {
      const [a, b] = points, apart = Math.hypot(a[0] - b[0], a[1] - b[1]) / radius;
      const bend = (1 - 0.3 * apart) / 2;
      path = `M${a} Q${(a[0] + b[0]) * bend},${(a[1] + b[1]) * bend} ${b}`;
    } else {
      const centre = [radius * set.at[0], -radius * set.at[1]];
      path = points.map((point) => `M${centre} L${point}`).join(" ");
    }
    const line = shape("path", {d: path, class: "edge " + signOf(set)});
    line.style.strokeWidth = set.at === null ? thick : 0.45 * thick + 0.4;
    group.append(line, shape("path", {d: path, class: "hit", "data-set": k}));
    if (set.at !== null) group.append(mark(set, k, radius * set.at[0], -radius * set.at[1]));
    return group;
  }

  function mark(set, k, x, y) {
    const look = {class: "mark " + signOf(set), "data-set": k};
    if (set.v.length > 4) return shape("circle", {cx: x, cy: y, r: 6, ...look});
    const turned = set.v.length === 4 ? `rotate(45 ${x} ${y})` : "";
    return shape("rect", {x: x - 5, y: y - 5, width: 10, height: 10, transform: turned, ...look});
  }

  function drawNode(node, k, [x, y], dot, size, level, most) {
    const name = short(report.names[node.v], 60);
    const many = graph.sets.filter((set) => set.v.includes(node.v)).length;
    const group = shape("g", {class: "node", "data-node": k, role: "button", tabindex: k === focus ? 0 : -1,
      "aria-pressed": "false", "aria-label": `${name}, in ${many} ${many === 1 ? "set" : "sets"}`});
    const text = shape("text", {"font-size": size, "dominant-baseline": "central"});
    const far = dot + 5, angle = Math.atan2(y, x) * 180 / Math.PI, right = Math.abs(angle) <= 90;
    if (level) {
      const middle = Math.abs(node.x) < 0.05;
      text.setAttribute("x", x + (middle ? 0 : far * Math.sign(x)));
      text.setAttribute("y", y + (middle ? (far + 6) * Math.sign(y) : far * node.y * -1));
      text.setAttribute("text-anchor", middle ? "middle" : x > 0 ? "start" : "end");
    } else {
      text.setAttribute("transform", `translate(${x} ${y}) rotate(${right ? angle : angle + 180})`);
      text.setAttribute("x", right ? far : -far);
      text.setAttribute("text-anchor", right ? "start" : "end");
    }
    text.textContent = short(report.names[node.v], most);
    const reach = shape("circle", {cx: x, cy: y, r: Math.max(dot, 9), opacity: 0});
    group.append(reach, shape("circle", {cx: x, cy: y, r: dot}), text);
    return group;
  }

  function frame() {
    const w = width / zoom, h = height / zoom;
    dx = Math.max(-width / 2, Math.min(width / 2, dx));
    dy = Math.max(-height / 2, Math.min(height / 2, dy));
    svg.setAttribute("viewBox", `${dx - w / 2} ${dy - h / 2} ${w} ${h}`);
    svg.classList.toggle("zoomed", zoom > 1);
  }

  function zoomBy(factor, x = dx, y = dy) {
    const next = Math.max(1, Math.min(12, zoom * factor));
    [dx, dy] = next === 1 ? [0, 0] : [x + (dx - x) * zoom / next, y + (dy - y) * zoom / next];
    zoom = next;
    frame();
  }

  function refresh() {
    const busy = new Set();
    let count = 0;
    graph.sets.forEach((set, k) => {
      const on = visible(set), near = chosen === null || set.v.includes(chosen);
      const group = setShapes[k];
      group.style.display = on ? "" : "none";
      group.classList.toggle("faint", unsure(set));
      group.classList.toggle("away", !near);
      if (on) count += 1;
      if (on && near) for (const v of set.v) busy.add(v);
    });
    graph.nodes.forEach((node, k) => {
      const group = nodeShapes[k];
      group.classList.toggle("idle", chosen === null && !busy.has(node.v));
      group.classList.toggle("away", chosen !== null && node.v !== chosen && !busy.has(node.v));
      group.classList.toggle("chosen", node.v === chosen);
      group.setAttribute("aria-pressed", String(node.v === chosen));
    });
    const words = `from ${number(least(), 2)}: ${count} of ${graph.sets.length} sets`;
    slider.setAttribute("aria-valuetext", words);
    busy.delete(chosen);
    const near = `; ${busy.size} ${busy.size === 1 ? "neighbour" : "neighbours"}`;
    byId("shown").textContent = words + (chosen === null ? "" : near);  // read aloud as it changes
    tell();
  }

  function termTable(set) {
    const table = element("table");
    for (const k of set.terms) {
      const term = report.terms[k];
      const interval = term.ci_low === null ? "" : `${number(term.ci_low)} to ${number(term.ci_high)}`;
      table.append(element("tr", {}, element("th", {scope: "row"}, termText(term)),
        element("td", {}, number(term.theta)), element("td", {}, interval)));
    }
    return table;
  }

  function tell() {
    const sets = graph.sets.filter((set) => visible(set) && (chosen === null || set.v.includes(chosen)));
    const shown = sets.slice(0, chosen === null ? 12 : 200);
    const others = new Set(sets.flatMap((set) => set.v));
    const heading = chosen === null ? "The strongest sets" : short(report.names[chosen], 80);
    const many = `${sets.length} ${sets.length === 1 ? "set" : "sets"}`;
    const line = chosen === null ? `${shown.length} of ${sets.length} that are shown`
      : `${Math.max(others.size - 1, 0)} neighbours in ${many} that are shown`;
    const parts = [element("h3", {}, heading), element("small", {}, line)];
    for (const set of shown) {
      const title = chosen === null ? setName(set) : "with " + set.v.filter((v) => v !== chosen)
        .map((v) => short(report.names[v], 24)).join(" and ");
      const small = element("small", {}, ` ${number(set.strength)}, ${sureness(set.q)}`);
      const details = element("details", {"data-set": graph.sets.indexOf(set)}, element("summary", {}, title, small));
      details.addEventListener("toggle", () => {
        if (details.open && !details.querySelector("table")) details.append(termTable(set));
      });
      parts.push(details);
    }
    if (chosen !== null) {
      const button = element("button", {type: "button"}, "Its terms in the table");
      button.addEventListener("click", () => document.dispatchEvent(new CustomEvent("terms-of", {detail: chosen})));
      parts.push(element("p", {class: "controls"}, button));
    }
    about.replaceChildren(...parts);
  }

  function choose(v) {
    chosen = v === chosen ? null : v;
    select.value = chosen === null ? "" : String(chosen);
    refresh();
  }

  function moveFocus(step) {
    nodeShapes[focus].setAttribute("tabindex", "-1");
    focus = order[(order.indexOf(focus) + step + order.length) % order.length];
    nodeShapes[focus].setAttribute("tabindex", "0");
    nodeShapes[focus].focus();
  }

  function light(k) {
    for (const group of world.querySelectorAll(".lit")) group.classList.remove("lit");
    if (k !== null) setShapes[k].classList.add("lit");
  }

  function point(event) {
    const k = event.target.getAttribute && event.target.getAttribute("data-set");
    tip.hidden = k === null || drag !== null && drag.moved;
    light(tip.hidden ? null : Number(k));
    if (tip.hidden) return;
    const set = graph.sets[k], lines = set.terms.slice(0, 8).map((j) => {
      const term = report.terms[j], known = term.ci_low !== null;
      const interval = known ? ` (${number(term.ci_low)} to ${number(term.ci_high)})` : "";
      return `${termText(term)}: ${number(term.theta)}${interval}`;
    });
    if (set.terms.length > 8) lines.push(`and ${set.terms.length - 8} more terms`);
    tip.replaceChildren(element("strong", {}, setName(set)),
      [`strength ${number(set.strength)}, ${sureness(set.q)}`, ...lines].join("\n"));
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 8)) + "px";
  }

  let drag = null;
  svg.addEventListener("pointerdown", (event) => {
    drag = {x: event.clientX, y: event.clientY, dx, dy, moved: false};
  });
  svg.addEventListener("pointermove", (event) => {
    if (drag && zoom > 1 && event.buttons) {
      const unit = width / zoom / svg.clientWidth;
      drag.moved = drag.moved || Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4;
      [dx, dy] = [drag.dx - (event.clientX - drag.x) * unit, drag.dy - (event.clientY - drag.y) * unit];
      frame();
    }
    point(event);
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; light(null); });
  svg.addEventListener("click", (event) => {
    if (drag && drag.moved) return;
    const node = event.target.closest("[data-node]");
    if (node) { focus = Number(node.getAttribute("data-node")); choose(graph.nodes[focus].v); } else point(event);
  });
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    zoomBy(Math.exp(-event.deltaY / 300), dx + ((event.clientX - box.left) / box.width - 0.5) * width / zoom,
      dy + ((event.clientY - box.top) / box.height - 0.5) * height / zoom);
  }, {passive: false});
  svg.addEventListener("keydown", (event) => {
    const does = {ArrowRight: () => moveFocus(1), ArrowDown: () => moveFocus(1), ArrowLeft: () => moveFocus(-1),
      ArrowUp: () => moveFocus(-1), Enter: () => choose(graph.nodes[focus].v), " ": () => choose(graph.nodes[focus].v),
      "+": () => zoomBy(1.3), "-": () => zoomBy(1 / 1.3), "0": () => zoomBy(0)}[event.key];
    if (does) { event.preventDefault(); does(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { tip.hidden = true; if (chosen !== null) choose(chosen); }
  });
  about.addEventListener("pointerover", (event) => {
    const details = event.target.closest("[data-set]");
    light(details ? Number(details.getAttribute("data-set")) : null);
  });
  about.addEventListener("pointerleave", () => light(null));
  slider.addEventListener("input", refresh);
  onlySure.addEventListener("change", refresh);
  select.addEventListener("change", () => {
    chosen = null;
    if (select.value === "") refresh(); else choose(Number(select.value));
  });
  byId("zoom-in").addEventListener("click", () => zoomBy(1.4));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.4));
  byId("zoom-reset").addEventListener("click", () => { zoomBy(0); chosen = null; select.value = ""; refresh(); });
  if (graph.sets.length > graph.first) {  // of very many the strongest first
    slider.value = Math.ceil(100 * Math.sqrt(graph.sets[graph.first].strength / strongest));
  }
  draw();
  let before = canvas.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(canvas.clientWidth - before) < 8 || matchMedia("print").matches) return;
    before = canvas.clientWidth;
    draw();
  }).observe(canvas);
}

if (report.graph.sets.length) drawGraph(report.graph);
