#include "cli/ls/listing.h"

#include <algorithm>
#include <utility>

#include "cli/terminal/terminal.h"
#include "core/ascii.h"
#include "core/format.h"
#include "core/text.h"
#include "io/source/composed_source.h"

namespace penstock::cli {
namespace {

using core::is_digit;

/// The digits that `text` begins with, without zeros in front; `text` is moved behind them.
std::string_view take_number(std::string_view& text) {
  const auto end = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

/// Whether `a` comes before `b`, where digits are numbers.
bool is_before(std::string_view a, std::string_view b) {
  const std::pair whole(a, b);
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const std::string_view x = take_number(a);
      const std::string_view y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[0] != b[0]) return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole.first < whole.second;
}

/// What both a line and an entry are sorted by.
struct Keys {
  std::string_view name;
  std::string_view dtype;
  const Shape& shape;
  std::uint64_t bytes;
};

bool comes_before(const Keys& a, const Keys& b, const std::string& by) {
  if (by == "name") return is_before(a.name, b.name);
  if (by == "size") return a.bytes > b.bytes;
  if (by == "dtype") return a.dtype < b.dtype;
  if (a.shape.rank() != b.shape.rank()) return a.shape.rank() < b.shape.rank();
  return std::lexicographical_compare(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end());
}

template <class Item, class KeysOf>
void sort_by(std::vector<Item>& items, const Order& order, const KeysOf& keys_of) {
  if (!order.by.empty()) {
    std::stable_sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
      return order.reverse ? comes_before(keys_of(b), keys_of(a), order.by)
                           : comes_before(keys_of(a), keys_of(b), order.by);
    });
  } else if (order.reverse) {
    std::reverse(items.begin(), items.end());
  }
}

std::string size_text(std::uint64_t bytes, const Style& style) {
  return style.exact_bytes ? human_count(bytes) : core::format_bytes(bytes);
}

}  // namespace

Line line_of(const Archive& archive, std::size_t number) {
  const TensorEntry& entry = archive.entries()[number];
  const StorageEntry& storage = archive.storages()[entry.storage];
  const std::string offset = storage.is_deflated() ? "deflated"
                             : io::as_composed(archive.sources()[storage.source])
                                 ? "in chunks"
                                 : human_count(storage.offset + entry.byte_offset);
  return {{}, entry.name, entry.dtype.name(), entry.shape, entry.nbytes(), offset};
}

void sort_lines(std::vector<Line>& lines, const Order& order) {
  sort_by(lines, order, [](const Line& line) { return Keys{line.name, line.dtype, line.shape, line.bytes}; });
}

void sort_entries(std::vector<std::size_t>& entries, const Archive& archive, const Order& order) {
  std::vector<std::string> dtypes;
  for (const TensorEntry& entry : archive.entries()) dtypes.push_back(entry.dtype.name());
  sort_by(entries, order, [&](std::size_t number) {
    const TensorEntry& entry = archive.entries()[number];
    return Keys{entry.name, dtypes[number], entry.shape, entry.nbytes()};
  });
}

void Totals::add(const Line& line) {
  ++tensors;
  elements += static_cast<std::uint64_t>(line.shape.numel());
  bytes += line.bytes;
}

void print_lines(const std::vector<Line>& lines, const Style& style) {
  std::vector<std::string> header{"NAME", "DTYPE", "SHAPE", "BYTES", "OFFSET"};
  std::vector<std::size_t> right{3, 4};
  if (style.with_files) {
    header.insert(header.begin(), "FILE");
    right = {4, 5};
  }
  std::vector<std::vector<std::string>> rows;
  for (const Line& line : lines) {
    rows.push_back({printable(line.name), printable(line.dtype), line.shape.to_string(), size_text(line.bytes, style),
                    line.offset});
    if (style.with_files) rows.back().insert(rows.back().begin(), printable(line.file));
  }
  print_table(header, rows, right);
}

void print_totals(const Totals& totals, const Style& style) {
  core::print("{}{}, {}, {}\n", style.with_files ? counted(totals.files, "file") + ", " : "",
              counted(totals.tensors, "tensor"), counted(totals.elements, "element"), size_text(totals.bytes, style));
}

}  // namespace penstock::cli
