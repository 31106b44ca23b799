#include "format/zip/index_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "penstock/ops.h"
#include "penstock/save.h"
#include "support/files.h"

namespace penstock::format {
namespace {

// Opening such a file reads no payload, so that it needs no thread beside the one that answers Ctrl-C.
TEST(ZipIndexBytes, AreFewHoweverLargeTheTensorsAre) {
  const test::TemporaryFolder folder;
  const Value value = Value::dict({{"w", Value::tensor(arange(0, 1'000'000, 1, DType::float32))}});
  for (const auto& [name, read_whole] : {std::pair("x.pt", ".pkl"), std::pair("x.npz", "")}) {
    save(value, folder / name, {.sync = false});
    const Source source = open_source(folder / name);
    EXPECT_LT(zip_index_bytes(*source, read_whole), 10'000U) << name;
    std::string file = test::read_file(folder / name);
    test::write_file(folder / name, file.substr(0, file.size() - 10));
    const Source cut = open_source(folder / name);
    EXPECT_EQ(zip_index_bytes(*cut, read_whole), file.size() - 10) << name;
  }
}

}  // namespace
}  // namespace penstock::format
