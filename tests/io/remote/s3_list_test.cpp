#include "io/remote/s3_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::io::remote {
namespace {

Objects read(const std::string& xml) {
  Objects out;
  EXPECT_EQ(kS3Listing.read(xml, "s3://b", "a", out), "");
  return out;
}

TEST(S3Lists, HaveTheSameObjectsHoweverTheirElementsAreWritten) {
  const std::string plain =
      "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a&lt;1</Key><Size>12</Size></Contents>"
      "<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes></ListBucketResult>";
  const std::string attributes =
      "<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><IsTruncated >false</IsTruncated ><Contents "
      "id=\"a>b\"\n n=''><Key xml:space=\"preserve\">a&lt;1</Key><Size a='/'>12</Size></Contents><CommonPrefixes "
      "a='1'><Prefix\n>a/</Prefix\n></CommonPrefixes></ListBucketResult>";
  const std::string prefixes =
      "<s3:ListBucketResult xmlns:s3=\"u\"><s3:IsTruncated>false</s3:IsTruncated><s3:Contents><s3:Key>a&lt;1</s3:Key>"
      "<s3:Owner/><s3:Size>12</s3:Size></s3:Contents><s3:CommonPrefixes><s3:Prefix>a/</s3:Prefix></s3:CommonPrefixes>"
      "</s3:ListBucketResult>";
  for (const std::string& xml : {plain, attributes, prefixes}) {
    const Objects found = read(xml);
    ASSERT_EQ(found.objects.size(), 1U) << xml;
    EXPECT_EQ(found.objects[0].key, "a<1");
    EXPECT_EQ(found.objects[0].size, 12U);
    EXPECT_EQ(found.folders, std::vector<std::string>{"a/"});
    for (std::size_t bytes = 0; bytes < xml.size(); ++bytes) {
      EXPECT_EQ(test::code_of([&] { read(xml.substr(0, bytes)); }), ErrorCode::kIo) << bytes;
    }
  }
}

}  // namespace
}  // namespace penstock::io::remote
