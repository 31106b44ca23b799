#pragma once

// `penstock ls`: tensors as lines, their order, and their sums.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "penstock/entry.h"
#include "penstock/load.h"

namespace penstock::cli {

/// By what a listing is sorted. The largest tensors come first, and names as people count: layers.2 before layers.10.
struct Order {
  std::string by;  ///< name, size, shape, dtype; empty: as they are in the file
  bool reverse = false;

  bool is_none() const noexcept { return by.empty() && !reverse; }
};

/// A tensor as a line of a listing, without its file, which need not stay open.
struct Line {
  std::string file;
  std::string name;
  std::string dtype;
  Shape shape;
  std::uint64_t bytes = 0;
  std::string offset;
};

Line line_of(const Archive& archive, std::size_t entry);
void sort_lines(std::vector<Line>& lines, const Order& order);
/// The entries in their order.
void sort_entries(std::vector<std::size_t>& entries, const Archive& archive, const Order& order);

struct Totals {
  std::uint64_t files = 0;
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;

  void add(const Line& line);
};

/// How a listing is printed.
struct Style {
  bool with_files = false;   ///< a column says which file a tensor is in
  bool exact_bytes = false;  ///< 1,536 in place of 1.5 kB
};

void print_lines(const std::vector<Line>& lines, const Style& style);
void print_totals(const Totals& totals, const Style& style);

}  // namespace penstock::cli
