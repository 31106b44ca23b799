#pragma once

/// How values, datasets and archives are iterated: `for (const Value& item : value)`. An iterator holds a handle on
/// what it walks over, and makes an element when it is asked for.

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

#include "penstock/standard.h"

namespace penstock::detail {

/// Calls owner[index].
struct Subscript {
  template <class Owner>
  auto operator()(const Owner& owner, std::size_t index) const {
    return owner[index];
  }
};

/// An input iterator over `Get()(owner, index)`; each dereference makes the element anew.
template <class Owner, class Get = Subscript>
class IndexIterator {
 public:
  using value_type = std::invoke_result_t<Get, const Owner&, std::size_t>;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;
  using pointer = void;
  using reference = value_type;

  IndexIterator(Owner owner, std::size_t index) : owner_(std::move(owner)), index_(index) {}
  value_type operator*() const { return Get()(owner_, index_); }
  IndexIterator& operator++() noexcept {
    ++index_;
    return *this;
  }
  void operator++(int) noexcept { ++index_; }
  friend bool operator==(const IndexIterator& a, const IndexIterator& b) noexcept { return a.index_ == b.index_; }

 private:
  Owner owner_;
  std::size_t index_;
};

}  // namespace penstock::detail
