#include "io/copy/gather.h"

#include <gtest/gtest.h>

#include "io/copy/scattered_rows.h"

namespace penstock::io {
namespace {

TEST(Gather, CopiesRowsOfEverySizeAndNothingBeside) {
  const auto gather_and_check = [](std::size_t count, std::size_t row_bytes) {
    test::expect_rows_copied(count, row_bytes, row_bytes % 5, [&](const auto& rows) { gather(rows, row_bytes); });
  };
  for (std::size_t row_bytes = 1; row_bytes <= 700; ++row_bytes) {
    for (const std::size_t count : {1, 2, 9, 20}) gather_and_check(count, row_bytes);
  }
  for (const std::size_t row_bytes : {1023, 1025, 4096, 16383, 16384, 16385, 40000}) gather_and_check(9, row_bytes);
}

}  // namespace
}  // namespace penstock::io
