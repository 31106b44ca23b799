#pragma once

// Samples of large files: where their tensors lie is decided before the batch has a block, and LargeFile reads them
// when it has one.

#include <span>
#include <string>

#include "data/files/large_file.h"
#include "data/files/layout_store.h"
#include "data/sample/sample.h"
#include "data/sample/work.h"

namespace penstock::data {

class LargeSamples {
 public:
  explicit LargeSamples(LayoutStore& store) : store_(store) {}

  /// The sample in a file that is read when its batch has a block (LargeFile). Its layout may be an assumed one where
  /// work.guesses allows that. With CallContext::headers_only its payloads are nowhere. Throws Error.
  Sample sample(const penstock::Source& file, std::span<const std::string> keys, const DescriptorLimit& limit,
                const Work& work);

 private:
  KnownFile find(const penstock::Source& source, std::span<const std::string> keys, const Work& work);
  FileLayoutPtr recognise(const LayoutStore::OfOneSize& known, const ByteSource& source, const Work& work,
                          StorageLocations& locations);
  KnownFile parse(const penstock::Source& source, std::span<const std::string> keys, const Work& work);
  bool learn_directory(const Archive& archive, FileLayout& layout, const Work& work);

  LayoutStore& store_;
};

}  // namespace penstock::data
