// Whatever file can be read can be written in every format that holds its content, and read back from there.

#include <optional>

#include "penstock/load.h"
#include "support/input.h"
#include "support/input_file.h"
#include "support/mutator.h"
#include "support/outcome.h"
#include "support/payload.h"
#include "support/written.h"

PENSTOCK_FUZZ_MUTATOR(mutate_file_and_choices)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using namespace penstock::fuzz;
  const Input input = split_input(data, size);
  Choices choices(input.choices);
  const InputFile file(input.file);
  const bool verify = !choices.flag();
  const bool map = choices.flag();
  std::optional<Archive> pieces;
  const auto value = attempt([&] {
    const Archive archive = open(file.path(), {.verify = verify});
    if (!is_small(archive)) return Value();
    const Value loaded = archive.load({.mmap = map, .verify = verify, .threads = 1});
    // In pieces, all checksums are compared.
    if (verify && !map) pieces.emplace(archive);
    return loaded;
  });
  if (value.ok()) check_written(*value.value, pieces ? &*pieces : nullptr);
  return 0;
}
