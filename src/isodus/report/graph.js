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

const byId = (id) => document.getElementById(id);
const turn = (node) => (Math.atan2(node.x, node.y) + 2 * Math.PI) % (2 * Math.PI);  // clockwise from the top
const unsure = (set) => set.q !== null && set.q >= report.level;
const signOf = (set) => set.sign > 0 ? "plus" : set.sign < 0 ? "minus" : "none";
const setName = (set, most = 24) => set.v.map((v) => short(report.names[v], most)).join(" – ");

// All that changes while a reader looks at the graph is in a view, which the functions below are given.
function newView(graph) {
  const order = graph.nodes.map((node, k) => k).sort((a, b) => turn(graph.nodes[a]) - turn(graph.nodes[b]));
  return {
    graph, order, canvas: byId("canvas"), about: byId("about"), tip: byId("tip"), slider: byId("threshold"),
    select: byId("variable"), onlySure: byId("only-sure"),
    strongest: Math.max(...graph.sets.map((set) => set.strength)),
    place: new Map(graph.nodes.map((node, k) => [node.v, k])),
    svg: shape("svg", {role: "group", "aria-label": "Graph of interacting variables"}), world: shape("g"),
    setShapes: [], nodeShapes: [], chosen: null, focus: order[0], drag: null,
    zoom: 1, dx: 0, dy: 0, width: 0, height: 0,
  };
}

const least = (view) => view.strongest * (view.slider.value / 100) ** 2;

function visible(view, set) {
  return set.strength >= least(view) && (!view.onlySure.checked || (set.q !== null && set.q < report.level));
}

// Where things go and how large they are, for the room that there is.
function measures(view) {
  const {graph} = view, n = graph.nodes.length;
  const width = Math.max(300, Math.min(view.canvas.clientWidth || 700, 860));
  const level = n <= 12 && width > 480;  // few names are horizontal
  const most = width < 480 ? 11 : 18;
  const longest = Math.max(...graph.nodes.map((node) => Array.from(short(report.names[node.v], most)).length));
  const guess = Math.min(longest * 7 + 22, 0.26 * width);
  const radius = Math.min(width / 2 - Math.max(guess, 30), 130 + 8 * n);
  return {
    width, level, most, radius, height: 2 * (radius + (level ? 42 : Math.max(guess, 30))),
    size: Math.max(5.5, Math.min(13, 2 * Math.PI * (radius + 8) / n * 0.92)),
    dot: Math.max(2.5, Math.min(9, 130 / n + 1.5)),
    widest: Math.max(2, Math.min(6, 7 - 0.04 * graph.sets.length)),
    at: graph.nodes.map((node) => [radius * node.x, -radius * node.y]),
  };
}

function draw(view) {
  const {graph, world, svg} = view, room = measures(view);
  [view.width, view.height] = [room.width, room.height];
  world.replaceChildren();
  view.setShapes = graph.sets.map((set, k) => setShape(view, set, k, room));
  view.nodeShapes = graph.nodes.map((node, k) => nodeShape(view, node, k, room));
  for (let k = view.setShapes.length - 1; k >= 0; k--) world.append(view.setShapes[k]);  // strong ones on top
  for (const k of view.order) world.append(view.nodeShapes[k]);
  svg.replaceChildren(world);
  view.canvas.replaceChildren(svg);
  frame(view);
  refresh(view);
}

function setShape(view, set, k, {at, radius, widest}) {
  const group = shape("g", {class: "set", "data-set": k});
  const thick = 0.7 + (widest - 0.7) * set.strength / view.strongest;
  const points = set.v.map((v) => at[view.place.get(v)]);
  const centre = set.at === null ? null : [radius * set.at[0], -radius * set.at[1]];
  const path = centre === null ? bentLine(points, radius) : points.map((point) => `M${centre} L${point}`).join(" ");
  const line = shape("path", {d: path, class: "edge " + signOf(set)});
  line.style.strokeWidth = centre === null ? thick : 0.45 * thick + 0.4;
  group.append(line, shape("path", {d: path, class: "hit", "data-set": k}));
  if (centre !== null) group.append(markShape(set, k, ...centre));
  return group;
}

function bentLine([a, b], radius) {
  const apart = Math.hypot(a[0] - b[0], a[1] - b[1]) / radius;
  const bend = (1 - 0.3 * apart) / 2;
  return `M${a} Q${(a[0] + b[0]) * bend},${(a[1] + b[1]) * bend} ${b}`;
}

function markShape(set, k, x, y) {
  const look = {class: "mark " + signOf(set), "data-set": k};
  if (set.v.length > 4) return shape("circle", {cx: x, cy: y, r: 6, ...look});
  const turned = set.v.length === 4 ? `rotate(45 ${x} ${y})` : "";
  return shape("rect", {x: x - 5, y: y - 5, width: 10, height: 10, transform: turned, ...look});
}

function nodeShape(view, node, k, room) {
  const [x, y] = room.at[k], name = short(report.names[node.v], 60);
  const many = view.graph.sets.filter((set) => set.v.includes(node.v)).length;
  const group = shape("g", {class: "node", "data-node": k, role: "button", tabindex: k === view.focus ? 0 : -1,
    "aria-pressed": "false", "aria-label": `${name}, in ${many} ${many === 1 ? "set" : "sets"}`});
  const reach = shape("circle", {cx: x, cy: y, r: Math.max(room.dot, 9), opacity: 0});
  group.append(reach, shape("circle", {cx: x, cy: y, r: room.dot}), nodeText(node, x, y, room));
  return group;
}

function nodeText(node, x, y, {dot, size, level, most}) {
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
  return text;
}

function frame(view) {
  const w = view.width / view.zoom, h = view.height / view.zoom;
  view.dx = Math.max(-view.width / 2, Math.min(view.width / 2, view.dx));
  view.dy = Math.max(-view.height / 2, Math.min(view.height / 2, view.dy));
  view.svg.setAttribute("viewBox", `${view.dx - w / 2} ${view.dy - h / 2} ${w} ${h}`);
  view.svg.classList.toggle("zoomed", view.zoom > 1);
}

function zoomBy(view, factor, x = view.dx, y = view.dy) {
  const next = Math.max(1, Math.min(12, view.zoom * factor)), ratio = view.zoom / next;
  [view.dx, view.dy] = next === 1 ? [0, 0] : [x + (view.dx - x) * ratio, y + (view.dy - y) * ratio];
  view.zoom = next;
  frame(view);
}

// Shows what the controls ask for; what is drawn stays.
function refresh(view) {
  const {graph, chosen} = view, busy = new Set();
  let count = 0;
  graph.sets.forEach((set, k) => {
    const on = visible(view, set), near = chosen === null || set.v.includes(chosen);
    const group = view.setShapes[k];
    group.style.display = on ? "" : "none";
    group.classList.toggle("faint", unsure(set));
    group.classList.toggle("away", !near);
    if (on) count += 1;
    if (on && near) for (const v of set.v) busy.add(v);
  });
  graph.nodes.forEach((node, k) => {
    const group = view.nodeShapes[k];
    group.classList.toggle("idle", chosen === null && !busy.has(node.v));
    group.classList.toggle("away", chosen !== null && node.v !== chosen && !busy.has(node.v));
    group.classList.toggle("chosen", node.v === chosen);
    group.setAttribute("aria-pressed", String(node.v === chosen));
  });
  const words = `from ${number(least(view), 2)}: ${count} of ${graph.sets.length} sets`;
  view.slider.setAttribute("aria-valuetext", words);
  busy.delete(chosen);
  const near = `; ${busy.size} ${busy.size === 1 ? "neighbour" : "neighbours"}`;
  byId("shown").textContent = words + (chosen === null ? "" : near);  // read aloud as it changes
  tell(view);
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

// The list beside the graph: the strongest sets, or the neighbourhood of a variable.
function tell(view) {
  const {graph, chosen} = view;
  const sets = graph.sets.filter((set) => visible(view, set) && (chosen === null || set.v.includes(chosen)));
  const shown = sets.slice(0, chosen === null ? 12 : 200);
  const others = new Set(sets.flatMap((set) => set.v));
  const heading = chosen === null ? "The strongest sets" : short(report.names[chosen], 80);
  const many = `${sets.length} ${sets.length === 1 ? "set" : "sets"}`;
  const line = chosen === null ? `${shown.length} of ${sets.length} that are shown`
    : `${Math.max(others.size - 1, 0)} neighbours in ${many} that are shown`;
  const parts = [element("h3", {}, heading), element("small", {}, line)];
  parts.push(...shown.map((set) => setDetails(view, set)));
  if (chosen !== null) {
    const button = element("button", {type: "button"}, "Its terms in the table");
    button.addEventListener("click", () => document.dispatchEvent(new CustomEvent("terms-of", {detail: chosen})));
    parts.push(element("p", {class: "controls"}, button));
  }
  view.about.replaceChildren(...parts);
}

function setDetails(view, set) {
  const others = set.v.filter((v) => v !== view.chosen).map((v) => short(report.names[v], 24));
  const title = view.chosen === null ? setName(set) : "with " + others.join(" and ");
  const small = element("small", {}, ` ${number(set.strength)}, ${sureness(set.q)}`);
  const details = element("details", {"data-set": view.graph.sets.indexOf(set)},
    element("summary", {}, title, small));
  details.addEventListener("toggle", () => {
    if (details.open && !details.querySelector("table")) details.append(termTable(set));
  });
  return details;
}

function choose(view, v) {
  view.chosen = v === view.chosen ? null : v;
  view.select.value = view.chosen === null ? "" : String(view.chosen);
  refresh(view);
}

function moveFocus(view, step) {
  const {order, nodeShapes} = view;
  nodeShapes[view.focus].setAttribute("tabindex", "-1");
  view.focus = order[(order.indexOf(view.focus) + step + order.length) % order.length];
  nodeShapes[view.focus].setAttribute("tabindex", "0");
  nodeShapes[view.focus].focus();
}

function light(view, k) {
  for (const group of view.world.querySelectorAll(".lit")) group.classList.remove("lit");
  if (k !== null) view.setShapes[k].classList.add("lit");
}

// The terms of the set under the pointer, beside it.
function point(view, event) {
  const {tip, drag} = view, k = event.target.getAttribute && event.target.getAttribute("data-set");
  tip.hidden = k === null || drag !== null && drag.moved;
  light(view, tip.hidden ? null : Number(k));
  if (tip.hidden) return;
  const set = view.graph.sets[k], lines = set.terms.slice(0, 8).map((j) => {
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

function dragTo(view, event) {
  const {drag} = view, unit = view.width / view.zoom / view.svg.clientWidth;
  drag.moved = drag.moved || Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4;
  view.dx = drag.dx - (event.clientX - drag.x) * unit;
  view.dy = drag.dy - (event.clientY - drag.y) * unit;
  frame(view);
}

function listenToPointer(view) {
  const {svg, about} = view;
  svg.addEventListener("pointerdown", (event) => {
    view.drag = {x: event.clientX, y: event.clientY, dx: view.dx, dy: view.dy, moved: false};
  });
  svg.addEventListener("pointermove", (event) => {
    if (view.drag && view.zoom > 1 && event.buttons) dragTo(view, event);
    point(view, event);
  });
  svg.addEventListener("pointerleave", () => { view.tip.hidden = true; light(view, null); });
  svg.addEventListener("click", (event) => {
    if (view.drag && view.drag.moved) return;
    const node = event.target.closest("[data-node]");
    if (!node) { point(view, event); return; }
    view.focus = Number(node.getAttribute("data-node"));
    choose(view, view.graph.nodes[view.focus].v);
  });
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    zoomBy(view, Math.exp(-event.deltaY / 300),
      view.dx + ((event.clientX - box.left) / box.width - 0.5) * view.width / view.zoom,
      view.dy + ((event.clientY - box.top) / box.height - 0.5) * view.height / view.zoom);
  }, {passive: false});
  about.addEventListener("pointerover", (event) => {
    const details = event.target.closest("[data-set]");
    light(view, details ? Number(details.getAttribute("data-set")) : null);
  });
  about.addEventListener("pointerleave", () => light(view, null));
}

function listenToKeys(view) {
  const chooseFocus = () => choose(view, view.graph.nodes[view.focus].v);
  const keys = {ArrowRight: () => moveFocus(view, 1), ArrowDown: () => moveFocus(view, 1),
    ArrowLeft: () => moveFocus(view, -1), ArrowUp: () => moveFocus(view, -1), Enter: chooseFocus, " ": chooseFocus,
    "+": () => zoomBy(view, 1.3), "-": () => zoomBy(view, 1 / 1.3), "0": () => zoomBy(view, 0)};
  view.svg.addEventListener("keydown", (event) => {
    if (event.key in keys) { event.preventDefault(); keys[event.key](); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    view.tip.hidden = true;
    if (view.chosen !== null) choose(view, view.chosen);
  });
}

function listenToControls(view) {
  view.slider.addEventListener("input", () => refresh(view));
  view.onlySure.addEventListener("change", () => refresh(view));
  view.select.addEventListener("change", () => {
    view.chosen = null;
    if (view.select.value === "") refresh(view); else choose(view, Number(view.select.value));
  });
  byId("zoom-in").addEventListener("click", () => zoomBy(view, 1.4));
  byId("zoom-out").addEventListener("click", () => zoomBy(view, 1 / 1.4));
  byId("zoom-reset").addEventListener("click", () => {
    zoomBy(view, 0);
    view.chosen = null;
    view.select.value = "";
    refresh(view);
  });
}

function drawAgainAsItGrows(view) {
  let before = view.canvas.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(view.canvas.clientWidth - before) < 8 || matchMedia("print").matches) return;
    before = view.canvas.clientWidth;
    draw(view);
  }).observe(view.canvas);
}

function showGraph(graph) {
  const view = newView(graph);
  if (graph.sets.length > graph.first) {  // of very many the strongest first
    view.slider.value = Math.ceil(100 * Math.sqrt(graph.sets[graph.first].strength / view.strongest));
  }
  draw(view);
  listenToPointer(view);
  listenToKeys(view);
  listenToControls(view);
  drawAgainAsItGrows(view);
}

if (report.graph.sets.length) showGraph(report.graph);
