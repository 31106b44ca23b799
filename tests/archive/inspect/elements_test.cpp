#include "archive/inspect/elements.h"

#include <gtest/gtest.h>

#include <string>

#include "archive/inspect/parts.h"
#include "format/dcp/checkpoint.h"
#include "penstock/load.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock::archive {
namespace {

/// A tensor in two chunks of rows or of columns, of which the second has a damaged byte.
void write_damaged(const test::TemporaryFolder& folder, bool by_rows) {
  test::MadeCheckpoint made(folder);
  const Tensor whole = test::numbered_tensor({300, 400}, DType::float32);
  using Sizes = std::vector<std::int64_t>;
  const Sizes half = by_rows ? Sizes{150, 400} : Sizes{300, 200};
  const test::MadeChunk first = made.put("__0_0.distcp", whole, {0, 0}, half);
  const test::MadeChunk second = made.put("__0_0.distcp", whole, by_rows ? Sizes{150, 0} : Sizes{0, 200}, half);
  made.tensor("w", {300, 400}, {first, second});
  made.file_of("__0_0.distcp")[second.offset + second.length / 2] ^= 1;
  made.write();
}

/// Reads all pieces, as statistics, hashes, comparisons and pictures do.
void read_all(const Archive& archive, ElementOrder order, std::int64_t piece) {
  const ElementFiles files(archive);
  const Elements elements(files, 0, order);
  elements.prepare();
  Elements::Scratch scratch;
  Elements::Cursor cursor(elements, scratch);
  for (std::int64_t at = 0; at < elements.count(); at += piece) {
    cursor.read(at, std::min(piece, elements.count() - at));
  }
  elements.finish();
}

TEST(Elements, DamageInAChunkOfACheckpointIsNoticed) {
  for (const bool by_rows : {true, false}) {
    const test::TemporaryFolder folder(test::quick_folder());
    write_damaged(folder, by_rows);
    for (const ElementOrder order : {ElementOrder::kC, ElementOrder::kStored}) {
      for (const std::int64_t piece : {1000, 120'000}) {
        EXPECT_EQ(test::code_of([&] { read_all(open(folder.path()), order, piece); }), ErrorCode::kChecksum)
            << by_rows << piece;
        EXPECT_NO_THROW(read_all(open(folder.path(), {.verify = false}), order, piece));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::archive
