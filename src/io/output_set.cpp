#include "io/file/output_set.h"

#include <utility>

#include "io/file/fate.h"

namespace penstock::io {

namespace {

bool is_its_own(const Output& output) noexcept {
  const auto* const fate = dynamic_cast<const Fate*>(&output);
  return fate == nullptr || fate->is_its_own();
}

}  // namespace

bool may_be_there(const Output& output) noexcept {
  const auto* const fate = dynamic_cast<const Fate*>(&output);
  return fate == nullptr || fate->may_be_there();
}

OutputSet::~OutputSet() {
  if (core::forks() != forks_) return;
  for (const std::string& path : committed_) remove_output(path);
}

void OutputSet::commit(std::string path, Output& output) {
  committed_.push_back(std::move(path));
  try {
    output.commit();
  } catch (...) {
    if (!is_its_own(output)) committed_.pop_back();
    throw;
  }
}

void OutputSet::commit_last(Output& output) {
  try {
    output.commit();
  } catch (...) {
    if (may_be_there(output)) committed_.clear();
    throw;
  }
  committed_.clear();
}

}  // namespace penstock::io
