#include "archive/load_tensors.h"

#include "archive/load_view.h"
#include "archive/loadable.h"
#include "archive/map_view.h"
#include "archive/materialise.h"

namespace penstock::archive {
namespace {

/// Gives views of the mapped file. Tensors that the file does not align are read.
std::vector<Tensor> map_tensors(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                const LoadOptions& options, Report& report) {
  LoadOptions reading = options;
  reading.mmap = false;
  std::vector<Tensor> out;
  std::size_t copied = 0;
  for (const TensorEntry& entry : wanted) {
    Tensor tensor = map_view(state, entry);
    if (tensor.defined()) {
      report.payload_bytes += tensor.nbytes();
    } else {
      tensor = load_view(state, entry, reading, report);
      ++copied;
    }
    out.push_back(tensor.with_requires_grad(entry.requires_grad));
  }
  report_mapped(out.size() - copied, copied, report);
  return out;
}

}  // namespace

std::vector<Tensor> load_tensors(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                 const LoadOptions& options, Report& report, Resident resident) {
  if (!options.mmap.value_or(false)) return load_whole(state, wanted, options, report, resident);
  for (const TensorEntry& entry : wanted) require_loadable(state, entry, options);
  return map_tensors(state, wanted, options, report);
}

}  // namespace penstock::archive
