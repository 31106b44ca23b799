// What is shown of a file, and of two.

const kMostFacets = 200;
const kMostTexts = 1000;

const kMarks = {
  nan: "NaN",
  inf: "Inf",
  zero: "all zero",
  constant: "constant",
  denormal: "denormal",
};

function facet(title, all, rows, of, label = (value) => value) {
  const values = [...new Set(rows.flatMap(of))].sort();
  return { title, options: [{ label: all },
    ...values.map((value) => ({ label: label(value), test: (row) => of(row).includes(value) }))] };
}

const number = (title, key, width = 84, hint = undefined) =>
  ({ title, key, right: true, width, hint, text: (row) => numberText(row[key]), value: (row) => row[key] });

function badges(marks) {
  return make("span", {}, ...marks.map((mark) => make("span", { class: `badge ${mark}` }, kMarks[mark] ?? mark)));
}

const fileColumn = (width) => ({ title: "File", width, text: (row) => readable(row.file ?? ""), value: (row) => row.file ?? null });

function fileColumns(data) {
  const columns = [
    { title: "Name", width: 340, text: nameOf, value: (row) => row.name },
    { title: "Type", width: 84, text: (row) => readable(row.dtype), value: (row) => row.dtype },
    { title: "Shape", width: 150, text: (row) => shapeText(row.shape), value: (row) => row.elements, right: true,
      hint: "Sort by the number of elements" },
    { title: "Bytes", width: 80, text: (row) => bytesText(row.bytes), value: (row) => row.bytes, right: true },
  ];
  if (data.tensors.some((row) => "file" in row)) columns.splice(data.files ? 1 : 4, 0, fileColumn(150));
  if (!data.values_read) return columns;
  if (data.tensors.some((row) => row.marks?.length)) {
    columns.push({ title: "Marks", width: 150, text: (row) => (row.marks ?? []).map((mark) => kMarks[mark]).join(", "),
      value: (row) => (row.marks?.length ? row.marks.length : null), draw: (row) => (row.marks?.length ? badges(row.marks) : null) });
  }
  columns.push(
    { title: "Histogram", width: 110, text: () => "", value: () => null, hint: "Of the finite elements; Enter shows it larger",
      draw: (row) => (row.histogram?.counts.length ? smallHistogram(row.histogram) : null) },
    number("Min", "min"), number("Max", "max"), number("Mean", "mean"), number("Std", "std"), number("Zeros", "zeros"),
    number("NaN", "nan", 70),
    { title: "Inf", width: 70, right: true, text: (row) => numberText(infinities(row)), value: infinities },
    number("Denormal", "denormals"));
  return columns;
}

function infinities(row) {
  return row.inf === undefined ? null : row.inf + row.negative_inf;
}

function openTensor(row) {
  const pairs = [["Type", readable(row.dtype)], ["Shape", shapeText(row.shape)], ["Elements", count(row.elements)],
    ["Bytes", `${count(row.bytes)} (${bytesText(row.bytes)})`]];
  if (row.file !== undefined) pairs.push(["File", readable(row.file)]);
  if (row.marks?.length) pairs.push(["Marks", row.marks.map((mark) => kMarks[mark]).join(", ")]);
  const names = { finite: "Finite", min: "Min", max: "Max", mean: "Mean", std: "Std", zeros: "Zeros", nan: "NaN", inf: "+Inf",
    negative_inf: "-Inf", denormals: "Denormal" };
  for (const [key, name] of Object.entries(names)) {
    if (typeof row[key] === "number") pairs.push([name, Number.isInteger(row[key]) ? count(row[key]) : String(row[key])]);
  }
  showDetails(nameOf({ name: row.name.slice(0, 2000) }), pairs, row.histogram?.counts.length ? largeHistogram(row.histogram) : null);
}

/** Several files as one: each tensor with its file, and all else under the name of its own. */
function joinedFiles(data) {
  const files = data.files.filter((file) => !("error" in file));
  const shared = sharedLength(data.files.map((file) => file.path));
  const names = files.map((file) => file.path.slice(shared));
  const named = (i, name) => (name === "" ? names[i] : `${names[i]}: ${name}`);
  const parts = names.map((name) => name.split("/").filter((part) => part !== ""));
  const texts = files.flatMap((file, i) => Object.entries(file.metadata).map(([key, text]) => [named(i, key), text]));
  const failed = data.files.filter((file) => "error" in file);
  const sum = (key) => files.reduce((all, file) => all + file[key], 0);
  for (const [i, file] of files.entries()) {
    for (const row of file.tensors) Object.assign(row, { file: names[i], above: parts[i] });
  }
  return { files: data.files.length, tensors: files.flatMap((file) => file.tensors),
    format: [...new Set(files.map((file) => file.format))].join(", "),
    elements: sum("elements"), bytes: sum("bytes"), file_bytes: sum("file_bytes"), values_left_out: sum("values_left_out"),
    values_read: files.every((file) => file.values_read),
    failed: failed.map((file) => [readable(file.path.slice(shared)), readable(file.error, 1000)]),
    unknown_globals: [...new Set(files.flatMap((file) => file.unknown_globals))],
    metadata: Object.fromEntries(texts),
    values: files.flatMap((file, i) => file.values.map((value) => ({ ...value, name: named(i, value.name) }))) };
}

function showFile(data, main) {
  const marked = data.tensors.filter((row) => row.marks?.length);
  const dtypes = [...new Set(data.tensors.map((row) => row.dtype))];
  const facts = [...(data.files ? [["Files", count(data.files)]] : []), ["Format", data.format || "none"],
    ["Tensors", count(data.tensors.length)], ["Elements", count(data.elements)],
    ["Bytes in tensors", bytesText(data.bytes)], ["File size", bytesText(data.file_bytes)],
    ["Types", readable(dtypes.slice(0, 4).join(", ") + (dtypes.length > 4 ? ", ..." : "")) || "none"]];
  if (data.values_read) facts.push(["Marked", marked.length === 0 ? "none" : count(marked.length)]);
  main.append(tiles(facts));
  if (data.failed?.length > 0) main.append(failures(`Files that could not be read (${count(data.failed.length)})`, data.failed));
  if (!data.values_read) main.append(make("p", { class: "note" }, "Only headers were read (--no-values)."));
  if (data.unknown_globals.length > 0) {
    main.append(make("p", { class: "note" }, `Names in the pickle that are kept inert and were not run: ${
      data.unknown_globals.map((name) => readable(name, 100)).join(", ")}`));
  }
  main.append(new Treemap(data.tensors, openTensor).element);
  const facets = [facet("Type", "All types", data.tensors, (row) => [row.dtype], (text) => readable(text, 40))];
  if (data.values_read) {
    const marks = facet("Marks", "All tensors", data.tensors, (row) => row.marks ?? [], (mark) => kMarks[mark] ?? mark);
    marks.options.splice(1, 0, { label: "Marked", test: (row) => row.marks?.length > 0 });
    facets.push(marks);
  }
  if (data.files > 1 && data.files <= kMostFacets) {
    facets.push(facet("File", "All files", data.tensors, (row) => [row.file], (name) => readable(name, 60)));
  }
  const table = new Table({ rows: data.tensors, columns: fileColumns(data), facets, open: openTensor, label: "Tensors" });
  main.append(make("h2", {}, "Tensors"), table.element);
  const texts = Object.entries(data.metadata).slice(0, kMostTexts).map(([key, text]) => [readable(key), readable(text, 2100)]);
  if (texts.length > 0) main.append(foldedList(`Metadata (${count(Object.keys(data.metadata).length)})`, texts));
  if (data.values.length > 0) {
    const more = data.values_left_out > 0 ? `, ${count(data.values_left_out)} more are not shown` : "";
    main.append(foldedList(`Other values (${count(data.values.length)}${more})`,
      data.values.map((value) => [nameOf(value), readable(value.value, 2100)])));
  }
  return table;
}

/** Pairs of files as one. */
function joinedPairs(data) {
  const pairs = data.pairs.filter((pair) => !("error" in pair));
  const sum = (key) => pairs.reduce((all, pair) => all + pair[key], 0);
  const only = (difference, files) => files.map((file) => ({ name: "", file, difference }));
  const side = (name, path) => {
    const of = pairs.map((pair) => pair[name]);
    const all = (key) => of.reduce((sum, file) => sum + file[key], 0);
    return { path, format: [...new Set(of.map((file) => file.format))].join(", ") || "no pair", tensors: all("tensors"),
      bytes: all("bytes") };
  };
  const differences = [...pairs.flatMap((pair) => pair.differences.map((row) => ({ ...row, file: pair.name }))),
    ...only("only_in_a", data.only_in_a), ...only("only_in_b", data.only_in_b)];
  return { ...data, a: side("a", data.path), b: side("b", data.other), differences, equal: differences.length === 0,
    equal_tensors: sum("equal_tensors"), equal_values: sum("equal_values"),
    failed: data.pairs.filter((pair) => "error" in pair).map((pair) => [readable(pair.name), readable(pair.error, 1000)]),
    different_metadata: [...new Set(pairs.flatMap((pair) => pair.different_metadata))] };
}

const kDifferences = {
  only_in_a: "only in A",
  only_in_b: "only in B",
  shape: "shape",
  dtype: "type",
  values: "values",
  value: "value",
};

function sideText(side) {
  if (side === undefined) return "";
  return readable(side.value ?? `${side.dtype} ${shapeText(side.shape)}`);
}

function openDifference(row) {
  const pairs = [["Difference", kDifferences[row.difference]], ["In A", sideText(row.a)], ["In B", sideText(row.b)]];
  if (row.file !== undefined) pairs.unshift(["File", readable(row.file)]);
  const names = { elements: "Elements", different: "Different", not_finite: "With NaN or Inf", max_absolute: "Max absolute",
    mean_absolute: "Mean absolute", max_relative: "Max relative", mean_relative: "Mean relative" };
  for (const [key, name] of Object.entries(names)) {
    if (key in row) pairs.push([name, typeof row[key] === "number" ? String(row[key]) : row[key]]);
  }
  if (row.first) {
    pairs.push(["First different", `[${row.first.join(", ")}]: ${readable(row.first_a)} in A, ${readable(row.first_b)} in B`]);
  }
  showDetails(nameOf(row), pairs, null);
}

function showDiff(data, main) {
  const rows = data.differences;
  const only = (kind) => count(rows.filter((row) => row.difference === kind).length);
  const files = data.pairs ? [["Pairs of files", count(data.pairs.length)]] : [];
  main.append(tiles([["Content", data.equal ? "equal" : "different"], ...files, ["Equal tensors", count(data.equal_tensors)],
    ["Equal other values", count(data.equal_values)],
    ["Different", count(rows.filter((row) => !row.difference.startsWith("only")).length)],
    ["Only in A", only("only_in_a")], ["Only in B", only("only_in_b")]]));
  const sides = ["a", "b"].map((name) => [name.toUpperCase(), `${readable(data[name].path, 1000)}: ${data[name].format}, ${
    counted(data[name].tensors, "tensor")}, ${bytesText(data[name].bytes)}`]);
  main.append(make("dl", { class: "pairs" }, ...sides.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])));
  if (data.failed?.length > 0) main.append(failures(`Files that could not be compared (${count(data.failed.length)})`, data.failed));
  const tolerance = data.rtol === 0 && data.atol === 0 ? "exactly" : `with rtol ${data.rtol} and atol ${data.atol}`;
  main.append(make("p", { class: "note" }, `Values were compared ${tolerance}; two NaNs ${
    data.nan_equal ? "are equal" : "differ"}. Relative differences are to B.`));
  if (data.different_metadata.length > 0) {
    main.append(make("p", { class: "note" }, `Metadata is not compared, and differs: ${
      data.different_metadata.map((key) => readable(key, 100)).join(", ")}`));
  }
  const columns = [
    { title: "Name", width: 260, text: nameOf, value: (row) => row.name },
    ...(data.pairs ? [fileColumn(180)] : []),
    { title: "Difference", width: 100, text: (row) => kDifferences[row.difference], value: (row) => row.difference },
    { title: "In A", width: 180, text: (row) => sideText(row.a), value: (row) => sideText(row.a) || null },
    { title: "In B", width: 180, text: (row) => sideText(row.b), value: (row) => sideText(row.b) || null },
    number("Elements", "elements", 100), number("Different", "different", 100), number("Max abs", "max_absolute", 110),
    number("Mean abs", "mean_absolute", 110), number("Max rel", "max_relative", 110), number("Mean rel", "mean_relative", 110),
  ];
  const facets = [facet("Difference", "All differences", rows, (row) => [row.difference], (kind) => kDifferences[kind])];
  const table = new Table({ rows, columns, facets, open: openDifference, label: "Differences" });
  main.append(make("h2", {}, "Differences"), table.element);
  return table;
}

/** What draws a page of each kind, and its title. */
const kPages = {
  file: (data) => [showFile, data, baseName(data.path)],
  files: (data) => [showFile, joinedFiles(data), readable(data.path, 120)],
  diff: (data) => [showDiff, data, `${baseName(data.a.path)} and ${baseName(data.b.path)}`],
  diffs: (data) => [showDiff, joinedPairs(data), `${readable(data.path, 60)} and ${readable(data.other, 60)}`],
  trace: (data) => [showTrace, data, baseName(data.path)],
};

const baseName = (path) => readable(path.split("/").filter((part) => part !== "").at(-1) ?? path, 120);

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [show, shown, title] = kPages[data.kind](data);
  document.title = `${title} - penstock report`;
  document.getElementById("title").textContent = title;
  attachTheme(document.getElementById("theme"));
  const main = document.getElementById("main");
  main.replaceChildren();
  const table = show(shown, main);
  main.append(make("footer", {}, `penstock ${data.penstock} report. Keys: / searches; arrows, Enter and Escape move in the map; in the table arrows, `
    + "Page Up, Page Down, Home and End move and Enter opens."));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, select") || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    table.search.focus();
  });
}

start();
