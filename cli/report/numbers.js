// Numbers as text, and histograms as drawings.

function count(number) {
  return number.toLocaleString("en-US");
}

function counted(number, what) {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}

/** Powers of 1000, as the command prints them. */
function bytesText(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (bytes >= 999.95 && unit + 1 < units.length) {
    bytes /= 1000;
    ++unit;
  }
  return `${unit === 0 ? bytes : bytes.toFixed(1)} ${units[unit]}`;
}

/** Four digits. A text, where JSON has no such number, stays as it is. */
function numberText(number) {
  if (number === null || number === undefined) return "";
  if (typeof number === "string") return number;
  const size = Math.abs(number);
  if (Number.isInteger(number) && size < 1e9) return count(number);
  if (size < 1e-3 || size >= 1e6) return number.toExponential(3);
  return String(Number(number.toPrecision(4)));
}

function shapeText(shape) {
  return `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
}

function percent(part, whole) {
  const share = whole > 0 ? (100 * part) / whole : 0;
  return share > 0 && share < 0.1 ? "< 0.1 %" : `${share.toFixed(1)} %`;
}

/** One path for all bars. A bar of a few numbers is drawn, however small beside the others. */
function bars(counts, width, height, gap) {
  const most = Math.max(...counts);
  const step = width / counts.length;
  let path = "";
  counts.forEach((number, i) => {
    if (number === 0) return;
    const tall = Math.max(1, (number / most) * height);
    const wide = Math.max(0.5, step - gap);
    path += `M${(i * step).toFixed(2)} ${height}v${(-tall).toFixed(2)}h${wide.toFixed(2)}V${height}z`;
  });
  return makeSvg("path", { d: path, class: "bars" });
}

function smallHistogram(histogram) {
  const box = { viewBox: "0 0 96 20", width: "96", height: "20", "aria-hidden": "true" };
  return makeSvg("svg", box, bars(histogram.counts, 96, 20, 0.5));
}

function largeHistogram(histogram) {
  const end = histogram.begin + histogram.width * histogram.counts.length;
  const labels = [[0, "start", histogram.begin], [560, "end", end]];
  if (histogram.begin < 0 && end > 0) labels.push([(560 * -histogram.begin) / (end - histogram.begin), "middle", 0]);
  const texts = labels.map(([x, anchor, value]) =>
    makeSvg("text", { x: x.toFixed(1), y: "176", "text-anchor": anchor }, numberText(value)));
  const most = Math.max(...histogram.counts);
  const label = `Histogram from ${numberText(histogram.begin)} to ${numberText(end)}, at most ${count(most)} in one bar`;
  return makeSvg("svg", { viewBox: "0 0 560 180", class: "histogram", role: "img", "aria-label": label },
    makeSvg("path", { d: "M0 160.5H560", class: "axis" }), bars(histogram.counts, 560, 156, 1.5), ...texts);
}
