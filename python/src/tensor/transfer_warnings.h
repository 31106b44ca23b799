#pragma once

#include <string>
#include <vector>

namespace penstock::python {

/// Keeps the transfer warnings of work on a thread that Python did not call, for the thread that it did. One at a time
/// on a thread, and destroyed there.
class CollectedWarnings {
 public:
  CollectedWarnings();
  ~CollectedWarnings();
  CollectedWarnings(const CollectedWarnings&) = delete;
  CollectedWarnings& operator=(const CollectedWarnings&) = delete;

  std::vector<std::string> take();

 private:
  std::vector<std::string> messages_;
};

/// Gives them to `warnings.warn`, as the caller's line; throws what a filter makes of them. Needs the GIL.
void issue_transfer_warnings(const std::vector<std::string>& messages);

}  // namespace penstock::python
