// Bytes by layer as areas. Names are taken apart at dots and slashes, below the folders and names of their files where
// there are several; a layer is opened by a click or Enter.
// Areas are squarified: Bruls, Huizing, van Wijk, "Squarified Treemaps" (2000).

const kDeepest = 64;
const kMostBoxes = 150;
const kInnerArea = 150;  // for one box within a box, where there are many
const kMostNested = 4;
const kMostSpans = 2500;
const kSmallest = 8;     // pixels, of a name
const kGlyph = 0.62;     // a character's width in its height
const kLeastShown = 4;    // characters, or none are
const kShortName = 10;   // longer ones are cut before they get smaller

/** Layers in layers: `label`, `path`, `bytes`, `tensors` (a number), `marked`, and `below` or one tensor's `row`. */
function layersOf(rows) {
  const root = { label: "", below: new Map(), bytes: 0, tensors: 0, marked: 0 };
  for (const row of rows) {
    const above = (row.above ?? []).length;
    const parts = [...(row.above ?? []), ...row.name.split(/[./]/).filter((part) => part !== "")];
    const glue = (i) => (i < above ? "/" : i === above && above > 0 ? ": " : ".");
    const path = parts.slice(0, kDeepest);
    const last = parts.length > kDeepest ? parts.slice(kDeepest - 1).join(".") : path.at(-1) ?? row.name;
    let at = root;
    add(at, row);
    for (const [i, part] of path.slice(0, -1).entries()) {
      if (!at.below.has(`+${part}`)) {
        at.below.set(`+${part}`, { label: part, glue: glue(i), below: new Map(), bytes: 0, tensors: 0, marked: 0 });
      }
      at = at.below.get(`+${part}`);
      add(at, row);
    }
    at.below.set(`=${row.file ?? ""}=${row.name}`, { label: last, glue: glue(path.length - 1), row, bytes: row.bytes, tensors: 1,
      marked: row.marks?.length ? 1 : 0 });
  }
  return joined(root, true);

  function add(layer, of) {
    layer.bytes += of.bytes;
    layer.tensors += 1;
    layer.marked += of.marks?.length ? 1 : 0;
  }
}

/** A layer of one layer becomes one box, "encoder.layers"; children largest first. */
function joined(layer, isRoot = false) {
  while (!isRoot && layer.below?.size === 1) {
    const [child] = layer.below.values();
    layer = { ...child, label: `${layer.label}${child.glue}${child.label}`, glue: layer.glue };
  }
  if (layer.below) {
    layer.children = [...layer.below.values()].map((child) => joined(child)).sort((a, b) => b.bytes - a.bytes);
  }
  return layer;
}

/** The first ones, and one box for the rest; largest first, as squarified() wants them. */
function fewest(children, most) {
  const seen = children.filter((child) => child.bytes > 0);
  if (seen.length <= most) return seen;
  const rest = seen.slice(most - 1);
  const sum = (key) => rest.reduce((all, child) => all + child[key], 0);
  const box = { label: `${count(rest.length)} more`, bytes: sum("bytes"), tensors: sum("tensors"), marked: sum("marked"),
    children: rest, isRest: true };
  return [...seen.slice(0, most - 1), box].sort((a, b) => b.bytes - a.bytes);
}

/** [{item, x, y, w, h}]: `items`, largest first, side by side in a box, as square as can be. */
function squarified(items, x, y, w, h) {
  const out = [];
  let left = items.reduce((sum, item) => sum + item.bytes, 0);
  for (let first = 0; first < items.length && w > 0 && h > 0;) {
    const side = Math.min(w, h);
    const scale = (w * h) / left;
    let sum = 0;
    let last = first;
    let worst = Infinity;
    for (; last < items.length; ++last) {
      const more = sum + items[last].bytes * scale;
      const ratio = Math.max((side * side * items[first].bytes * scale) / (more * more),
        (more * more) / (side * side * items[last].bytes * scale));
      if (ratio > worst) break;
      worst = ratio;
      sum = more;
    }
    const thick = Math.min(sum / side, Math.max(w, h));
    let along = 0;
    for (; first < last; ++first) {
      const long = sum > 0 ? (items[first].bytes * scale * side) / sum : 0;
      out.push(w >= h ? { item: items[first], x, y: y + along, w: thick, h: long }
        : { item: items[first], x: x + along, y, w: long, h: thick });
      along += long;
      left -= items[first].bytes;
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
  }
  return out;
}

class Treemap {
  constructor(rows, open) {
    this.open = open;
    this.path = [layersOf(rows)];
    while (this.layer.children.length === 1 && this.layer.children[0].children) this.path.push(this.layer.children[0]);
    this.crumbs = make("nav", { class: "crumbs", "aria-label": "Layers above" });
    this.map = make("div", { class: "map", role: "group", "aria-label": "Bytes by layer. Arrow keys move, Enter opens, "
      + "Escape goes up.", onkeydown: (e) => this.onKey(e) });
    this.element = make("section", { "aria-label": "Bytes by layer" }, make("h2", {}, "Bytes by layer"), this.crumbs, this.map);
    new ResizeObserver(() => this.draw()).observe(this.map);
  }

  get layer() { return this.path.at(-1); }

  go(path, focus) {
    this.path = path;
    this.draw();
    const boxes = [...this.map.querySelectorAll("button")];
    (boxes.find((box) => box.item === focus) ?? boxes[0])?.focus();
  }

  enter(item) {
    if (item.row) this.open(item.row);
    else this.go([...this.path, item]);
  }

  draw() {
    const hadFocus = this.map.contains(document.activeElement) ? document.activeElement.item : null;
    const { clientWidth: width, clientHeight: height } = this.map;
    const boxes = squarified(fewest(this.layer.children, kMostBoxes), 0, 0, width, height);
    this.map.replaceChildren(...boxes.map((box, i) => this.box(box, i)));
    if (boxes.length === 0) this.map.append(make("p", { class: "none" }, "No bytes in tensors"));
    if (hadFocus) [...this.map.children].find((box) => box.item === hadFocus)?.focus();
    this.crumbs.replaceChildren(...this.path.map((layer, i) => {
      const label = i === 0 ? "All" : readable(layer.label, 60);
      if (i + 1 === this.path.length) return make("span", { "aria-current": "location" }, `${label}: ${summaryOf(layer)}`);
      return make("button", { type: "button", onclick: () => this.go(this.path.slice(0, i + 1), this.path[i + 1]) }, label);
    }));
  }

  box({ item, x, y, w, h }, i) {
    const text = `${readable(item.label, 120)}: ${summaryOf(item)}, ${percent(item.bytes, this.layer.bytes)}`;
    const box = make("button", { type: "button", class: `box hue${i % 8}`, tabindex: i === 0 ? "0" : "-1",
      "aria-label": text, title: text, onclick: () => this.enter(item) });
    place(box, x, y, w, h);
    box.item = item;
    if (item.marked > 0) box.classList.add("marked");
    box.append(...labelOf(item, w, h, 13));
    if (w > 60 && h > 36 && !item.children) box.append(make("span", { class: "size" }, bytesText(item.bytes)));
    this.spans = Math.ceil((kMostSpans * item.bytes) / this.layer.bytes);
    if (w > 30 && h > 40 && item.children) box.append(...this.inner(item, w, h, 1));
    return box;
  }

  /** What lies in a layer, drawn and no more, some levels deep. */
  inner(item, w, h, level) {
    const most = Math.max(4, Math.min(this.spans, Math.floor((w * h) / kInnerArea)));
    const boxes = squarified(fewest(item.children, most), 3, 20, w - 8, h - 25).filter((box) => box.w >= 3 && box.h >= 3);
    this.spans -= boxes.length;
    return boxes.map((box) => {
      const inner = make("span", { class: box.item.marked > 0 ? "inner marked" : "inner", "aria-hidden": "true" });
      inner.append(...labelOf(box.item, box.w, box.h, 11));
      const isDeeper = box.item.children && !box.item.isRest && level < kMostNested && this.spans > 0;
      if (isDeeper && box.w > 30 && box.h > 40) inner.append(...this.inner(box.item, box.w, box.h, level + 1));
      place(inner, box.x, box.y, box.w, box.h);
      return inner;
    });
  }

  onKey(event) {
    const from = document.activeElement;
    if (event.key === "Escape" || event.key === "Backspace") {
      if (this.path.length === 1) return;
      this.go(this.path.slice(0, -1), this.layer);
    } else if (event.key.startsWith("Arrow") && from.classList.contains("box")) {
      const next = this.neighbour(from, event.key);
      if (next) {
        from.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    } else {
      return;
    }
    event.preventDefault();
  }

  /** The nearest box that way. */
  neighbour(from, key) {
    const middle = (box) => [box.offsetLeft + box.offsetWidth / 2, box.offsetTop + box.offsetHeight / 2];
    const [x, y] = middle(from);
    const [alongX, sign] = { ArrowLeft: [true, -1], ArrowRight: [true, 1], ArrowUp: [false, -1], ArrowDown: [false, 1] }[key];
    let best = null;
    let least = Infinity;
    for (const box of this.map.querySelectorAll(".box")) {
      const [dx, dy] = [middle(box)[0] - x, middle(box)[1] - y];
      const [ahead, aside] = alongX ? [dx * sign, Math.abs(dy)] : [dy * sign, Math.abs(dx)];
      if (ahead <= 0.5 || ahead + 2 * aside >= least) continue;
      [best, least] = [box, ahead + 2 * aside];
    }
    return best;
  }
}

/** Its name, smaller in a narrow box, so that boxes side by side all have one; none where it could not be read. */
function labelOf(item, w, h, largest) {
  const text = readable(item.label, 120);
  const fits = (w - 9) / (kGlyph * Math.min(text.length, kShortName));
  const size = Math.max(kSmallest, Math.min(largest, fits));
  if (fits * Math.min(text.length, kShortName) < size * Math.min(text.length, kLeastShown) || h < size + 5) return [];
  const label = make("span", { class: "label" }, text);
  label.style.fontSize = `${size.toFixed(1)}px`;
  return [label];
}

function place(element, x, y, w, h) {
  Object.assign(element.style, { left: `${x.toFixed(1)}px`, top: `${y.toFixed(1)}px`, width: `${Math.max(0, w - 1).toFixed(1)}px`,
    height: `${Math.max(0, h - 1).toFixed(1)}px` });
}

function summaryOf(layer) {
  const marked = layer.marked > 0 ? `, ${count(layer.marked)} marked` : "";
  return `${bytesText(layer.bytes)} in ${counted(layer.tensors, "tensor")}${marked}`;
}
