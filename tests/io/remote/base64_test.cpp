#include "io/remote/base64.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::io::remote {
namespace {

std::string base64_of(std::string_view text) {
  return base64({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

TEST(Base64, GivesWhatTheRfcLists) {
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foo"), "Zm9v");
  EXPECT_EQ(base64_of("foob"), "Zm9vYg==");
  EXPECT_EQ(base64_of("\xff\xfe\xfd"), "//79");
}

std::string text_in(std::string_view base64) {
  const auto bytes = base64_bytes(base64);
  return bytes ? std::string(bytes->begin(), bytes->end()) : "none";
}

TEST(Base64, IsReadAsItIsWritten) {
  for (const std::string& text :
       std::vector<std::string>{"f", "fo", "foo", "foob", "fooba", "foobar", "\xff\xfe\xfd"}) {
    EXPECT_EQ(text_in(base64_of(text)), text);
  }
  for (const char* const bad : {"", "Zg", "Zg=", "Z===", "Zm9v=", "Zm 9", "Zm9!", "=Zg=", "Zg==Zg=="}) {
    EXPECT_EQ(text_in(bad), "none") << bad;
  }
}

}  // namespace
}  // namespace penstock::io::remote
