#pragma once

#include <type_traits>
#include <utility>

#include "penstock/penstock.h"

/// A row of a table of misuses: `TYPE` has the call where it has a name, and refuses it where it is a temporary.
#define REFUSES_ON_TEMPORARY(TYPE, ...)                     \
  static_assert([]<class T>(T*) {                           \
    return requires(T & it) { it __VA_ARGS__; };            \
  }(static_cast<TYPE*>(nullptr)));                          \
  static_assert(!([]<class T>(T*) {                         \
    return requires(T & it) { std::move(it) __VA_ARGS__; }; \
  }(static_cast<TYPE*>(nullptr))))
/// On a temporary, the call gives a value of its own and no reference.
#define BY_VALUE_ON_TEMPORARY(TYPE, ...) static_assert(!std::is_reference_v<decltype(std::declval<TYPE>() __VA_ARGS__)>)
/// What has a name is assigned to, a temporary is not.
#define ASSIGNS_TO_NAMES_ALONE(TYPE)                                                            \
  static_assert(std::is_copy_assignable_v<TYPE> && std::is_nothrow_move_assignable_v<TYPE>);    \
  static_assert(!std::is_assignable_v<TYPE, TYPE> && !std::is_assignable_v<TYPE, const TYPE&>); \
  static_assert(std::is_nothrow_move_constructible_v<TYPE> && std::is_copy_constructible_v<TYPE>)
/// `RIGHT` compiles with the parameters, whose types are template parameters here, `WRONG` does not.
#define REFUSES(PARAMETERS, WRONG, RIGHT) \
  static_assert(FITS(PARAMETERS, RIGHT)); \
  static_assert(!FITS(PARAMETERS, WRONG))
#define FITS(PARAMETERS, EXPRESSION)                                                                                  \
  ([]<class Archive, class Batch, class DataLoader, class Dataset, class Error, class LazyTensor, class SampleStream, \
      class Tensor, class Value, class WritableArchive>() {                                                           \
    return requires PARAMETERS { EXPRESSION; };                                                                       \
  }.template operator()<penstock::Archive, penstock::Batch, penstock::DataLoader, penstock::Dataset, penstock::Error, \
                        penstock::LazyTensor, penstock::SampleStream, penstock::Tensor, penstock::Value,              \
                        penstock::WritableArchive>())
