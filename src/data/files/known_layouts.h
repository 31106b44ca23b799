#pragma once

// The one place where a file is recognised or parsed, whatever its size and whoever opened it.

#include "data/files/large_samples.h"
#include "data/files/layout_store.h"
#include "data/files/small_samples.h"
#include "data/sample/scratch.h"

namespace penstock::data {

/// Makes samples of files. Remembers the layouts of the files before, so that a file written by the same program is
/// recognised and not parsed. One for each thread and dataset.
class KnownLayouts : public Scratch::State {
  LayoutStore store_;

 public:
  KnownLayouts() = default;
  KnownLayouts(const KnownLayouts&) = delete;
  KnownLayouts& operator=(const KnownLayouts&) = delete;
  /// Of members of an archive: see LayoutStore.
  void expect_members() noexcept { store_.expect_members(); }

  SmallSamples small{store_};  ///< that are in memory
  LargeSamples large{store_};  ///< that are read when the batch has a block
};

}  // namespace penstock::data
