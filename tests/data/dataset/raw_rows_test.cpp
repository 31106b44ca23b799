// Rows of arrays in files without a header.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "penstock/loader.h"
#include "penstock/raw.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock {
namespace {

TEST(RawRows, RowsOfAFileAreSamples) {
  const test::TemporaryFolder folder;
  const Tensor tokens = test::numbered_tensor({512, 100}, DType::uint16);
  test::write_file(folder / "train.bin",
                   std::string(1024, '#') + std::string(reinterpret_cast<const char*>(tokens.data()), tokens.nbytes()));
  const LazyTensor array = raw(folder / "train.bin", {.dtype = DType::uint16, .shape = {-1, 100}, .offset = 1024});
  for (const OptionalFlag mmap : {OptionalFlag(true), OptionalFlag(false), OptionalFlag()}) {
    DataLoader loader(rows(array, mmap), {.batch_size = 512, .num_workers = 0});
    EXPECT_TRUE(Tensor::identical(loader.next()->tensor(), tokens));
  }
}

TEST(RawRows, RowsThatWereWrittenToAreChanged) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "train.bin";
  test::write_file(path, std::string(4096, 'a'));
  const Dataset samples = rows(raw(path, {.dtype = DType::uint8, .shape = {-1, 16}}));
  samples.get(0);
  test::write_file(path, std::string(4096, 'b'));
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  DataLoader loader(samples, {.batch_size = 4, .num_workers = 0});
  EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kChanged);
}

}  // namespace
}  // namespace penstock
