// What each thread did and when. The time line is a canvas, since a trace may have a million events: of those that
// share a column of points, the longest is drawn. Below it stands the same as sums in a table.

const kLane = 40;
const kSteps = { ArrowLeft: [-0.2, 1], ArrowRight: [0.2, 1], "+": [0, 0.5], "=": [0, 0.5], "-": [0, 2] };

/** Lanes of a trace: events by their begin, each with how many others it lies in. */
function lanesOf(data) {
  return data.lanes.map((lane) => {
    const events = [];
    for (let i = 0; i < lane.events.length; i += 4) {
      const [what, begin, time, number] = lane.events.slice(i, i + 4);
      events.push({ what, begin, end: begin + time, number, depth: 0 });
    }
    events.sort((a, b) => a.begin - b.begin || b.end - a.end);
    const around = [];
    for (const event of events) {
      while (around.length > 0 && around.at(-1).end < event.end - 0.15) around.pop();
      event.depth = Math.min(1, around.length);
      around.push(event);
    }
    return { name: lane.name, events };
  });
}

/** Takes the time out in which nobody iterated: between the caller's events, but for what is in front of the first. */
function leaveOutGaps(lanes) {
  const gaps = [];
  let end = null;
  for (const event of lanes.find((lane) => lane.name === "caller")?.events ?? []) {
    if (end !== null && event.begin > end) gaps.push({ from: end, to: event.begin });
    end = Math.max(end ?? 0, event.end);
  }
  if (end === null) return;
  gaps.push({ from: end, to: Infinity });
  let before = 0;
  for (const gap of gaps) {
    gap.before = before;
    before += gap.to - gap.from;
  }
  const without = (time) => {
    let [first, last] = [0, gaps.length];  // the gap that begins last before `time`
    while (first < last) {
      const middle = (first + last) >> 1;
      if (gaps[middle].from <= time) first = middle + 1;
      else last = middle;
    }
    if (first === 0) return time;
    const { from, to, before: cut } = gaps[first - 1];
    return time < to ? from - cut : time - cut - (to - from);
  };
  for (const lane of lanes) for (const event of lane.events) [event.begin, event.end] = [without(event.begin), without(event.end)];
}

function timeText(microseconds) {
  if (microseconds >= 1e6) return `${(microseconds / 1e6).toFixed(3)} s`;
  return microseconds >= 1000 ? `${(microseconds / 1000).toFixed(2)} ms` : `${microseconds.toFixed(1)} us`;
}

class Timeline {
  constructor(lanes, names, end) {
    Object.assign(this, { lanes, names, end, from: 0, to: end });
    this.canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": "Time line. + and - zoom, arrows move, 0 shows all. "
      + "The table below has the same as sums.", onkeydown: (e) => this.onKey(e), onmousemove: (e) => this.tell(e),
      onwheel: (e) => this.onWheel(e) });
    this.told = make("output", { class: "told" }, "Point at something. + and - zoom, arrows move, 0 shows all; the wheel with Ctrl zooms.");
    const key = names.map((name, i) => make("span", { class: `key hue${i % 12}` }, readable(name, 60)));
    this.element = make("section", { "aria-label": "Time line" }, make("h2", {}, "Time line"),
      make("div", { class: "keys" }, ...key), this.canvas, this.told);
    this.canvas.style.height = `${lanes.length * kLane + 24}px`;
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    new MutationObserver(() => this.draw()).observe(document.documentElement, { attributes: true });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    const to = this.canvas.getContext("2d");
    to.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name);
    to.font = "12px system-ui, sans-serif";
    this.lanes.forEach((lane, i) => {
      to.fillStyle = colour("--faint");
      to.fillText(readable(lane.name, 60), 4, i * kLane + 11);
      this.drawLane(to, lane, i * kLane + 15, width, colour);
    });
    to.fillStyle = colour("--faint");
    to.fillText(timeText(this.from), 4, height - 6);
    to.textAlign = "right";
    to.fillText(timeText(this.to), width - 4, height - 6);
    to.textAlign = "left";
  }

  drawLane(to, lane, top, width, colour) {
    const scale = width / (this.to - this.from);
    const hues = this.names.map((_, i) => colour(`--hue${i % 12}`));
    const last = [{ x: -1 }, { x: -1 }];  // the last column that was drawn, at each depth
    for (const event of lane.events) {
      if (event.begin > this.to) break;
      if (event.end < this.from) continue;
      const x = Math.max(0, (event.begin - this.from) * scale);
      const wide = Math.min(width, (event.end - this.from) * scale) - x;
      if (wide < 1 && Math.floor(x) === last[event.depth].x) continue;
      last[event.depth].x = Math.floor(x);
      to.fillStyle = hues[event.what];
      to.fillRect(x, top + event.depth * 9, Math.max(0.75, wide), event.depth === 0 ? 20 : 11);
    }
  }

  /** The innermost event at a point. */
  at(x, y) {
    const lane = this.lanes[Math.floor(y / kLane)];
    const time = this.from + (x / this.canvas.clientWidth) * (this.to - this.from);
    let found = null;
    for (const event of lane?.events ?? []) {
      if (event.begin > time) break;
      if (event.end >= time) found = event;
    }
    return found && { lane, event: found };
  }

  tell(pointer) {
    const found = this.at(pointer.offsetX, pointer.offsetY);
    if (!found) return;
    const { lane, event } = found;
    const number = event.number >= 0 ? ` ${count(event.number)}` : "";
    this.told.textContent = `${readable(lane.name, 60)}: ${readable(this.names[event.what], 60)}${number}, ${
      timeText(event.end - event.begin)} from ${timeText(event.begin)}`;
  }

  show(from, to) {
    const wide = Math.min(this.end, Math.max(1, to - from));
    this.from = Math.min(Math.max(0, from), this.end - wide);
    this.to = this.from + wide;
    this.draw();
  }

  onKey(event) {
    const wide = this.to - this.from;
    if (event.key === "0") this.show(0, this.end);
    else if (event.key in kSteps) {
      const [step, zoom] = kSteps[event.key];
      const middle = (this.from + this.to) / 2 + step * wide;
      this.show(middle - (wide * zoom) / 2, middle + (wide * zoom) / 2);
    } else return;
    event.preventDefault();
  }

  onWheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const share = event.offsetX / this.canvas.clientWidth;
    const wide = (this.to - this.from) * (event.deltaY > 0 ? 1.25 : 0.8);
    const point = this.from + share * (this.to - this.from);
    this.show(point - share * wide, point + (1 - share) * wide);
  }
}

/** One row for each thread and what it did. */
function sumsOf(lanes, names) {
  return lanes.flatMap((lane) => {
    const rows = new Map();
    const spent = lane.events.reduce((last, event) => Math.max(last, event.end), 0) - (lane.events[0]?.begin ?? 0);
    for (const event of lane.events) {
      const time = event.end - event.begin;
      const row = rows.get(event.what) ?? { name: names[event.what], thread: lane.name, times: 0, total: 0, longest: 0, spent };
      rows.set(event.what, row);
      row.times += 1;
      row.total += time;
      row.longest = Math.max(row.longest, time);
    }
    return [...rows.values()];
  });
}

const kStages = { open_seconds: "Opening files", read_seconds: "Reading", decode_seconds: "Decoding", collate_seconds: "Laying out batches",
  copy_seconds: "Copying into batches" };

/** What `penstock bench` measured, and what its workers spent their time on. */
function showBench(bench, main) {
  const rate = (of) => `${count(Math.round(of.samples_per_second))} ${readable(bench.samples, 20)}/s, ${bytesText(of.bytes_per_second)}/s`;
  main.append(tiles([["Loader", rate(bench)],
    ...(bench.floor ? [["Floor", rate(bench.floor)], ["Of the floor", percent(bench.ratio_to_floor, 1)]] : []),
    ["Batch", count(bench.batch_size)], ["Workers", count(bench.num_workers)], ["Epochs", count(bench.epochs)],
    ["First batch", timeText(bench.first_batch_seconds * 1e6)], ["Caller waited", `${timeText(bench.wait_seconds * 1e6)} of ${
      timeText(bench.wall_seconds * 1e6)}`]]));
  const note = (text) => make("p", { class: "note" }, text);
  main.append(note(readable(bench.too_short ? "The loader ran so shortly that this says little: give more --epochs." : bench.limit)),
    note(readable(bench.workers_because)), ...(bench.floor ? [note(`The floor is what the machine does with the same bytes and no library in between: ${
      readable(bench.floor.what)}. It was measured between the epochs, a time that is left out below.`)] : []));
  const spent = Object.entries(kStages).map(([key, name]) => [name, bench[key]]);
  const rest = bench.worker_capacity - spent.reduce((sum, [, seconds]) => sum + seconds, 0);
  if (rest > 0) spent.push(["Waiting", rest]);
  const all = spent.reduce((sum, [, seconds]) => sum + seconds, 0);
  const bar = (seconds) => makeSvg("svg", { viewBox: "0 0 300 12", width: "300", height: "12", "aria-hidden": "true" },
    makeSvg("rect", { width: (300 * (all > 0 ? seconds / all : 0)).toFixed(1), height: "12", class: "bars" }));
  main.append(make("h2", {}, "Time of the workers by stage"), make("dl", { class: "pairs" }, ...spent.flatMap(([name, seconds]) =>
    [make("dt", {}, name), make("dd", {}, bar(seconds), ` ${timeText(seconds * 1e6)}, ${percent(seconds, all)}`)])));
}

function showTrace(data, main) {
  const lanes = lanesOf(data);
  if (data.bench) leaveOutGaps(lanes);
  let end = 1;
  let events = 0;
  for (const lane of lanes) {
    events += lane.events.length;
    for (const event of lane.events) end = Math.max(end, event.end);
  }
  if (data.bench) showBench(data.bench, main);
  main.append(tiles([["Threads", count(lanes.length)], ["Events", count(events)], ["Time", timeText(end)]]));
  if (data.dropped > 0) main.append(make("p", { class: "note" }, `${count(data.dropped)} later events were not recorded.`));
  main.append(new Timeline(lanes, data.names, end).element);
  const time = (title, key) => ({ title, right: true, width: 110, text: (row) => timeText(row[key]), value: (row) => row[key] });
  const columns = [
    { title: "What", width: 200, text: nameOf, value: (row) => row.name },
    { title: "Thread", width: 160, text: (row) => readable(row.thread), value: (row) => row.thread },
    number("Times", "times"), time("Total", "total"),
    { title: "Share", right: true, width: 90, text: (row) => percent(row.total, row.spent), value: (row) => row.total / row.spent,
      hint: "Of the time from the thread's first event to its last" },
    { title: "Mean", right: true, width: 110, text: (row) => timeText(row.total / row.times), value: (row) => row.total / row.times },
    time("Longest", "longest"),
  ];
  const rows = sumsOf(lanes, data.names);
  const open = (row) => showDetails(`${nameOf(row)} of ${readable(row.thread)}`,
    columns.slice(2).map((column) => [column.title, column.text(row)]), null);
  const facets = [facet("Thread", "All threads", rows, (row) => [row.thread], (name) => readable(name, 60))];
  const table = new Table({ rows, columns, facets, open, label: "Sums" });
  main.append(make("h2", {}, "Where the time went"), table.element);
  return table;
}
