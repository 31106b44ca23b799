#include "cli/headerless_samples.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace penstock::cli {

Dataset headerless_samples(const TensorFiles& files, const Headerless& headerless) {
  if (files.is_single) return rows(headerless.open(files.paths.front()).entry(0));
  return dataset(std::ssize(files.paths), [paths = files.paths, headerless](std::int64_t i) {
    return headerless.open(paths[static_cast<std::size_t>(i)]).load();
  });
}

}  // namespace penstock::cli
