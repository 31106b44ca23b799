#include "format/part_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/error.h"

namespace penstock::format {
namespace {

std::string missing(const std::vector<std::string>& names) {
  try {
    require_all_parts(names, "folder");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_EQ(error.path(), "folder");
    return error.what();
  }
  return {};
}

TEST(PartNames, TheFirstPartThatIsMissingIsNamed) {
  EXPECT_NE(missing({"m-00001-of-00003.pt", "m-00003-of-00003.pt"}).find("'m-00002-of-00003.pt' is"),
            std::string::npos);
  EXPECT_NE(missing({"a/m-2-of-2.pt", "a/m-2-of-3.pt", "a/m-1-of-2.pt"}).find("'a/m-1-of-3.pt' is"), std::string::npos);
  EXPECT_NE(missing({"x-0-of-3-v2.bin", "x-1-of-3-v2.bin"}).find("'x-2-of-3-v2.bin' is"), std::string::npos);
}

TEST(PartNames, WholeSetsAndOtherNamesPass) {
  EXPECT_EQ(missing({"m-00001-of-00002.pt", "m-00002-of-00002.pt", "n-00000-of-00001.pt", "other.pt"}), "");
  EXPECT_EQ(missing({"m-00001-of-00001.pt", "m-00001-of-00001.safetensors"}), "");
  EXPECT_EQ(missing({"one-of-five.pt", "-of-", "5-of-7.pt", "m-3-of-2.pt", "m--of-3", "m-1-of-99999999999999", ""}),
            "");
}

}  // namespace
}  // namespace penstock::format
