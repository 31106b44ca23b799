// A table of any number of rows, of which only those in sight are elements. Columns have a title, `text(row)`, and
// `value(row)` to sort by; perhaps `draw(row)`, a width, and `right` for numbers.

const kRowHeight = 28;
const kSpareRows = 8;

class Table {
  /** `facets`: choices beside the search, each a title and options of a label and a test. `open(row)`: Enter, click. */
  constructor({ rows, columns, facets, open, label }) {
    Object.assign(this, { rows, columns, open });
    this.searched = rows.map((row) => `${row.file ?? ""} ${row.name}`.toLowerCase());
    this.sorted = null;
    this.current = 0;
    this.chosen = facets.map((facet) => facet.options[0]);
    this.shown = rows.map((_, i) => i);
    this.buildTools(facets, label);
    this.buildGrid(label);
    this.element = make("section", { class: "table", "aria-label": label }, this.tools, this.scroller);
    this.update();
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  buildTools(facets, label) {
    this.search = make("input", { type: "search", placeholder: "Search names ( / )", "aria-label": `Search ${label}`,
      spellcheck: "false", oninput: () => this.update() });
    this.found = make("output", { "aria-live": "polite" });
    this.tools = make("div", { class: "tools" }, this.search);
    facets.forEach((facet, i) => {
      const select = make("select", { "aria-label": facet.title, onchange: () => {
        this.chosen[i] = facet.options[select.selectedIndex];
        this.update();
      } });
      for (const option of facet.options) select.append(make("option", {}, option.label));
      this.tools.append(select);
    });
    this.tools.append(this.found);
  }

  buildGrid(label) {
    this.heads = this.columns.map((column, i) => make("div", { role: "columnheader", class: column.right ? "right" : "" },
      make("button", { type: "button", title: column.hint ?? `Sort by ${column.title}`, onclick: () => this.sortBy(i) },
        column.title)));
    this.head = make("div", { role: "row", class: "head row", "aria-rowindex": "1" }, ...this.heads);
    this.body = make("div", { class: "body", role: "rowgroup" });
    this.scroller = make("div", { class: "scroller", role: "grid", tabindex: "0", "aria-label": label,
      "aria-colcount": String(this.columns.length), onscroll: () => this.draw(), onkeydown: (e) => this.onKey(e) },
      this.head, this.body);
    const widths = this.columns.map((column) => column.width ?? 90);
    const grid = this.columns.map((column, i) => (i === 0 ? `minmax(${widths[i]}px, 1fr)` : `${widths[i]}px`)).join(" ");
    this.scroller.style.setProperty("--columns", grid);
    this.scroller.style.setProperty("--least", `${widths.reduce((sum, width) => sum + width, 0)}px`);
  }

  /** First as they are largest first, where they are numbers, then the other way, then as in the file. */
  sortBy(i) {
    const first = this.columns[i].right ? -1 : 1;
    if (this.sorted?.column !== i) this.sorted = { column: i, sign: first };
    else this.sorted = this.sorted.sign === first ? { column: i, sign: -first } : null;
    this.update();
  }

  update() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const tests = this.chosen.filter((option) => option.test);
    const shown = [];
    this.rows.forEach((row, i) => {
      if (words.every((word) => this.searched[i].includes(word)) && tests.every((option) => option.test(row))) shown.push(i);
    });
    this.shown = this.sorted ? this.order(shown) : shown;
    this.heads.forEach((head, i) => {
      const sign = this.sorted?.column === i ? this.sorted.sign : 0;
      head.setAttribute("aria-sort", sign === 0 ? "none" : sign > 0 ? "ascending" : "descending");
    });
    const all = this.rows.length;
    this.found.textContent = shown.length === all ? count(all) : `${count(shown.length)} of ${count(all)}`;
    this.scroller.setAttribute("aria-rowcount", String(shown.length + 1));
    this.body.style.height = `${Math.max(1, shown.length) * kRowHeight}px`;
    this.current = 0;
    this.scroller.scrollTop = 0;
    this.draw();
  }

  /** Rows without a value come last, either way. */
  order(shown) {
    const { column, sign } = this.sorted;
    const keys = this.rows.map((row) => this.columns[column].value(row) ?? null);
    const compare = (a, b) => (typeof a === "string" ? (a < b ? -1 : a > b ? 1 : 0) : a - b);
    return shown.sort((i, j) => {
      const [a, b] = [keys[i], keys[j]];
      if (a === null || b === null) return (a === null) - (b === null) || i - j;
      return sign * compare(a, b) || i - j;
    });
  }

  draw() {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / kRowHeight) - kSpareRows);
    const inSight = Math.ceil(this.scroller.clientHeight / kRowHeight) + 2 * kSpareRows;
    const elements = [];
    for (let at = first; at < Math.min(this.shown.length, first + inSight); ++at) elements.push(this.rowElement(at));
    if (this.shown.length === 0) elements.push(make("p", { class: "none" }, "Nothing to show"));
    this.body.replaceChildren(...elements);
    if (this.shown.length > 0) this.scroller.setAttribute("aria-activedescendant", `row-${this.current}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  rowElement(at) {
    const row = this.rows[this.shown[at]];
    const cells = this.columns.map((column) => {
      const drawn = column.draw?.(row);
      const text = column.text(row);
      const cell = make("div", { role: "gridcell", class: column.right ? "right" : "" }, drawn ?? text);
      if (!drawn && text.length > 12) cell.title = text;
      return cell;
    });
    const isCurrent = at === this.current;
    const element = make("div", { role: "row", id: `row-${at}`, class: "row", "aria-rowindex": String(at + 2),
      "aria-selected": String(isCurrent), onclick: () => this.choose(at, true) }, ...cells);
    element.style.top = `${at * kRowHeight}px`;
    if (row.marks?.length) element.classList.add("marked");
    return element;
  }

  choose(at, isOpened) {
    this.current = Math.min(Math.max(0, at), this.shown.length - 1);
    if (this.shown.length === 0) return;
    const top = this.current * kRowHeight;
    const room = this.scroller.clientHeight - 2 * kRowHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
    this.draw();
    if (isOpened) this.open(this.rows[this.shown[this.current]]);
  }

  onKey(event) {
    if (event.target !== this.scroller || event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / kRowHeight) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      this.choose(this.current + steps[event.key], false);
    } else if (event.key === "Enter") {
      this.choose(this.current, true);
    } else {
      return;
    }
    event.preventDefault();
  }
}
