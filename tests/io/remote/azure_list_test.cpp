#include "io/remote/azure_list.h"

#include <gtest/gtest.h>

#include <string>

#include "core/format.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::io::remote {
namespace {

const std::string kName = "az://c";

std::string page(const std::string& blobs, const std::string& marker) {
  return core::format(
      "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"https://h/\" "
      "ContainerName=\"c\"><Prefix>a</Prefix><Blobs>{}</Blobs>{}</EnumerationResults>",
      blobs, marker);
}

std::string blob(const std::string& name, const std::string& properties) {
  return core::format("<Blob>{}<Properties>{}</Properties></Blob>", name, properties);
}

Objects read(const std::string& xml, std::string& marker) {
  Objects out;
  marker = kAzureListing.read(xml, kName, "a", out);
  return out;
}

TEST(AzureLists, HaveBlobsFoldersAndAMarker) {
  std::string marker;
  const Objects found = read(
      page(blob("<Name>a&amp;b+%41</Name>", "<Content-Length>12</Content-Length>") +
               blob("<Name Encoded=\"true\">a%01%2B+</Name>", "<Content-Length>0</Content-Length>") +
               blob("<Name>a/dir</Name>", "<ResourceType>directory</ResourceType><Content-Length>0</Content-Length>") +
               "<BlobPrefix><Name>a/</Name></BlobPrefix>",
           "<NextMarker>2!76&amp;</NextMarker>"),
      marker);
  ASSERT_EQ(found.objects.size(), 2U);
  EXPECT_EQ(found.objects[0].key, "a&b+%41");
  EXPECT_EQ(found.objects[0].size, 12U);
  EXPECT_EQ(found.objects[1].key, "a\x01++");
  EXPECT_EQ(found.folders, std::vector<std::string>{"a/"});
  EXPECT_EQ(marker, "2!76&");
  EXPECT_TRUE(read(page("", "<NextMarker />"), marker).objects.empty());
  EXPECT_EQ(marker, "");
}

TEST(AzureLists, ThatAreNotWholeAreErrors) {
  const std::string good = page(blob("<Name>a</Name>", "<Content-Length>1</Content-Length>"), "<NextMarker/>");
  for (const std::string& xml :
       {std::string(), good.substr(0, good.size() - 10), page("", ""), std::string("<ListBucketResult/>"),
        page(blob("<Name>a</Name>", ""), "<NextMarker/>"),
        page(blob("<Name>b</Name>", "<Content-Length>1</Content-Length>"), "<NextMarker/>"),
        page(blob("<Name>a</Name>", "<Content-Length>1e3</Content-Length>"), "<NextMarker/>")}) {
    std::string marker;
    EXPECT_EQ(test::code_of([&] { read(xml, marker); }), ErrorCode::kIo) << xml;
  }
}

}  // namespace
}  // namespace penstock::io::remote
