#pragma once

// How sets of outputs (output_set.h) learn what became of one whose `commit` failed.

namespace penstock::io {

/// What an Output also is that knows how its `commit` failed.
class Fate {
 public:
  /// Of a `commit` that threw: whether the output may have its name all the same. False only where that is certain: a
  /// store may do what it was asked and its answer be lost, and a file has its name before its folder is flushed.
  virtual bool may_be_there() const noexcept = 0;
  /// Whether what is there then is this output. An object of a store may be somebody else's.
  virtual bool is_its_own() const noexcept = 0;

 protected:
  ~Fate() = default;
};

}  // namespace penstock::io
