#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::data {

/// Sorts lists of names one after another in the same memory. For one thread at a time.
class NameSorter {
 public:
  /// `names`, which are each followed by NUL, in bytewise order and without repeats.
  std::string sorted(std::string_view names);

 private:
  struct Name {
    std::uint64_t key;  ///< the eight bytes behind what all names begin with, so that few strings are compared
    const char* text;
  };

  void split(std::string_view names);
  void sort_by_key();
  void sort_by_byte(unsigned shift);
  void settle_ties();

  std::vector<Name> order_;
  std::vector<Name> other_;
};

}  // namespace penstock::data
