#pragma once

/// How values, datasets and archives are iterated: `for (const Value& item : value)`. An iterator holds a handle on
/// what it walks over, and makes an element when it is asked for.

#include <cstddef>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "penstock/standard.h"

namespace penstock::detail {

/// Calls owner[index], with the type of index that the owner takes.
template <class Index>
struct Subscript {
  template <class Owner>
  auto operator()(const Owner& owner, std::size_t index) const {
    return owner[static_cast<Index>(index)];
  }
};

/// An input iterator over `Get()(owner, index)`; each dereference makes the element anew. The element is const, because
/// assigning to it would change nothing.
template <class Owner, class Get = Subscript<std::size_t>>
class IndexIterator {
 public:
  using value_type = std::invoke_result_t<Get, const Owner&, std::size_t>;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;
  using pointer = void;
  using reference = const value_type;

  /// May only be destroyed or assigned to.
  IndexIterator() = default;
  IndexIterator(Owner owner, std::size_t index) : owner_(std::move(owner)), index_(index) {}
  reference operator*() const { return Get()(*owner_, index_); }
  IndexIterator& operator++() noexcept {
    ++index_;
    return *this;
  }
  void operator++(int) noexcept { ++index_; }
  friend bool operator==(const IndexIterator& a, const IndexIterator& b) noexcept { return a.index_ == b.index_; }

 private:
  std::optional<Owner> owner_;
  std::size_t index_ = 0;
};

}  // namespace penstock::detail
