// The table of terms: sorted, filtered, downloaded. Rows are in the page; values are in the data.
function liveTable(terms) {
  const body = byId("table").tBodies[0], heads = Array.from(byId("table").tHead.rows[0].cells);
  const rows = Array.from(body.rows);
  const fullName = (term) => term.powers.map(([v, k]) => report.names[v] + (k > 1 ? "^" + k : "")).join("*");
  const folded = terms.map((term) => fullName(term).toLowerCase());
  const filter = byId("filter"), order = byId("order"), sure = byId("sure-terms");
  let only = null;

  function sortBy(head, key) {
    const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
    const value = key === "term" ? (k) => folded[k] : (k) => terms[k][key];
    const at = (row) => Number(row.getAttribute("data-k"));
    rows.sort((a, b) => {
      const x = value(at(a)), y = value(at(b));
      if (x === null || y === null) return (x === null) - (y === null);  // what is not known comes last
      return down * (x < y ? -1 : x > y ? 1 : 0);
    });
    body.append(...rows);
  }

  function show() {
    const text = filter.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const k = Number(row.getAttribute("data-k")), term = terms[k];
      const on = (text === "" || folded[k].includes(text)) && (order.value === "" || term.order === Number(order.value))
        && (!sure.checked || (term.q_value !== null && term.q_value < report.level))
        && (only === null || term.powers.some(([v]) => v === only));
      row.hidden = !on;
      count += on;
    }
    const of = only === null ? "" : ", those of " + short(report.names[only], 30);
    byId("count").textContent = `${count} of ${terms.length} terms${of}`;
  }

  function cell(value) {
    if (value === null) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;  // or a spreadsheet would take a name for a formula
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }

  function download() {
    const columns = ["degree", "order", "theta", "stderr", "ci_low", "ci_high", "p_value", "q_value", "standardized"];
    const lines = [["term", ...columns].join(",")];
    for (const row of rows) {
      if (row.hidden) continue;
      const term = terms[Number(row.getAttribute("data-k"))];
      lines.push([fullName(term), ...columns.map((name) => term[name])].map(cell).join(","));
    }
    const url = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], {type: "text/csv"}));
    const link = element("a", {href: url, download: "terms.csv"});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  for (const head of heads) {
    const button = head.querySelector("button");
    button.addEventListener("click", () => sortBy(head, button.getAttribute("data-column")));
  }
  filter.addEventListener("input", () => { only = null; show(); });
  for (const one of [order, sure]) one.addEventListener("change", show);
  byId("download").addEventListener("click", download);
  document.addEventListener("terms-of", (event) => {
    only = event.detail;
    filter.value = "";
    show();
    byId("terms").scrollIntoView();
    filter.focus({preventScroll: true});
  });
  show();
}

if (report.terms.length) liveTable(report.terms);
