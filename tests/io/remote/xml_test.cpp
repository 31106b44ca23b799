#include "io/remote/xml.h"

#include <gtest/gtest.h>

namespace penstock::io::remote {
namespace {

TEST(Xml, HasTextAndEntities) {
  EXPECT_EQ(xml_text("<E><Code>A&amp;B</Code><Code>C</Code></E>", "Code"), "A&B");
  EXPECT_EQ(xml_text("<Code>cut", "Code"), "");
  EXPECT_EQ(xml_decoded("&#65;&#x42;&#10;&lt;&bad;&#999999;&"), "AB\n<&bad;\xF3\xB4\x88\xBF&");
  EXPECT_EQ(xml_decoded("&#xe9;&#x0000E9;&#128512;"), "\xC3\xA9\xC3\xA9\xF0\x9F\x98\x80");
  for (const char* const other : {"&#0;", "&#x110000;", "&#-1;", "&#;", "&#x;", "&41;", "&;", "&#65 ;"}) {
    EXPECT_EQ(xml_decoded(other), other);
  }
}

}  // namespace
}  // namespace penstock::io::remote
