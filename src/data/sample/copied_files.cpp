#include "data/sample/copied_files.h"

#include <algorithm>

#include "data/sample/held_file.h"
#include "data/sample/sample.h"

namespace penstock::data {

void CopiedFiles::add(const HeldFile* file, std::size_t position) {
  // Samples of a few files may follow each other in any order; what is noted twice costs no more than a place.
  constexpr std::size_t kRemembered = 8;
  const auto recent = std::span(files_).last(std::min(files_.size(), kRemembered));
  const auto is_same = [file](const auto& noted) { return noted.first == file; };
  if (std::none_of(recent.begin(), recent.end(), is_same)) files_.emplace_back(file, position);
}

void CopiedFiles::require_unchanged() {
  std::sort(files_.begin(), files_.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  files_.erase(std::unique(files_.begin(), files_.end(), same), files_.end());
  for (const auto& [file, position] : files_) {
    try {
      file->require_unchanged();
    } catch (const Error& error) {
      throw SampleError(position, error);
    }
  }
}

}  // namespace penstock::data
