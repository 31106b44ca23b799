// The text is the documentation's own example (https://learn.microsoft.com/rest/api/storageservices/
// authorize-with-shared-key); the signature is what Python's hmac makes of it with the emulator's key.

#include "io/remote/azure_signature.h"

#include <gtest/gtest.h>

#include <string>

#include "io/remote/base64.h"

namespace penstock::io::remote {
namespace {

constexpr std::string_view kKey =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

SharedKeyRequest of_the_docs() {
  return {.account = "myaccount",
          .path = "/mycontainer",
          .query = {{"restype", "container"}, {"comp", "metadata"}, {"timeout", "20"}},
          .headers = {{"x-ms-version", "2015-02-21"}, {"x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"}}};
}

TEST(SharedKey, IsMadeOfTheTextOfTheDocumentation) {
  EXPECT_EQ(shared_key_text(of_the_docs()),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
            "/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20");
  EXPECT_EQ(shared_key(of_the_docs(), *base64_bytes(kKey)),
            "SharedKey myaccount:1u9lui2jDxj0+fpbHjQ5m5NnastJRSYM+PSmfi8TXx4=");
}

TEST(SharedKey, SignsEveryHeaderInItsPlace) {
  const SharedKeyRequest request{.method = "PUT",
                                 .account = "a",
                                 .path = "/a/c/b%20d",
                                 .query = {{"comp", "block"}, {"blockid", "AA=="}},
                                 .headers = {{"range", "bytes=0-9"},
                                             {"if-match", "\"e\""},
                                             {"if-none-match", " * "},
                                             {"content-type", "text/plain"},
                                             {"content-md5", "md5=="},
                                             {"expect", "nothing"},
                                             {"x-ms-b", " 2 "},
                                             {"x-ms-a", "1"}},
                                 .body_bytes = 11};
  EXPECT_EQ(shared_key_text(request),
            "PUT\n\n\n11\nmd5==\ntext/plain\n\n\n\"e\"\n*\n\nbytes=0-9\nx-ms-a:1\nx-ms-b:2\n/a/a/c/b%20d\n"
            "blockid:AA==\ncomp:block");
}

TEST(HttpDates, AreInEnglish) {
  EXPECT_EQ(http_date(1'435'361'952), "Fri, 26 Jun 2015 23:39:12 GMT");
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
}

}  // namespace
}  // namespace penstock::io::remote
