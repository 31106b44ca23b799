#include "io/file/output_set.h"

#include <utility>

namespace penstock::io {

OutputSet::~OutputSet() {
  if (core::forks() != forks_) return;
  for (const std::string& path : committed_) remove_output(path);
}

void OutputSet::commit(std::string path, Output& output) {
  committed_.push_back(std::move(path));
  try {
    output.commit();
  } catch (...) {
    if (!output.is_its_own()) committed_.pop_back();
    throw;
  }
}

void OutputSet::commit_last(Output& output) {
  try {
    output.commit();
  } catch (...) {
    if (output.may_be_there()) committed_.clear();
    throw;
  }
  committed_.clear();
}

}  // namespace penstock::io
