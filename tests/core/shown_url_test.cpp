#include "core/shown_url.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "penstock/error.h"

namespace penstock::core {
namespace {

const std::vector<std::pair<std::string, std::string>> kShown = {
    {"https://h/x?X-Amz-Signature=abc", "https://h/x?..."},
    {"https://h/x?sig=a/b&c=d#e", "https://h/x?..."},
    {"https://h/x?download=true&token=abc", "https://h/x?..."},
    {"https://h/x?versionId=1&download", "https://h/x?versionId=1&download"},
    {"https://h/x#token", "https://h/x"},
    {"HTTPS://h/x?sig=abc", "HTTPS://h/x?..."},
    {"https:/h/x?sig=abc", "https:/h/x?..."},
    {"az://container/x?sig=abc", "az://container/x?..."},
    {"az://container/x?y#z", "az://container/x?y#z"},
    {"s3://bucket/x?a=b&X-Amz-Signature=abc", "s3://bucket/x?..."},
    {"s3://bucket/x?AWSAccessKeyId=A&Signature=abc", "s3://bucket/x?..."},
    {"hf://owner/repo/x?token=abc", "hf://owner/repo/x?..."},
    {"s3://bucket/x?design=abc", "s3://bucket/x?design=abc"},
    {"https://user:hunter2@h:8/x", "https://...@h:8/x"},
    {"https://user:hunt/er2@h/x", "https://...@h/x"},
    {"https://user:hunter2", "https://..."},
    {"s3://ID:hun/ter2@bucket/key", "s3://...@bucket/key"},
    {"s3://bucket/key?with#marks", "s3://bucket/key?with#marks"},
    {"hf://owner/repo@rev/x?y", "hf://owner/repo@rev/x?y"},
    {"http://[::1]:8/x", "http://[::1]:8/x"},
    {"http://h:8/x@2", "http://h:8/x@2"},
    {"/data/what?x=y#z", "/data/what?x=y#z"},
    {"C:/x?y", "C:/x?y"},
    {"", ""},
};

TEST(ShownPath, HasNothingSecret) {
  for (const auto& [url, shown] : kShown) {
    EXPECT_EQ(shown_path(url), shown);
    EXPECT_EQ(shown_path(shown), shown);
  }
}

TEST(ShownPath, IsWhatErrorsHave) {
  const Error error(ErrorCode::kIo, "not 'https://h/b?sig=abc', but http://u:hunter2@h/c, so: (https://h/d?sig=abc).",
                    {.path = "https://h/a?sig=abc"});
  EXPECT_EQ(error.path(), "https://h/a?...");
  EXPECT_STREQ(error.what(), "https://h/a?...: not 'https://h/b?...', but http://...@h/c, so: (https://h/d?...).");
  EXPECT_EQ(Error(ErrorCode::kIo, "x").within({.path = "https://h/a?sig=abc"}).path(), "https://h/a?...");
  EXPECT_EQ(Error(ErrorCode::kIo, "x").prefixed("https://h/a?sig=abc: ").message(), "https://h/a?...: x");
}

TEST(ShownPath, IsWhatQuotesHave) {
  const std::string url = "https://h/" + std::string(100, 'x') + "?sig=abcdef";
  EXPECT_EQ(core::quoted(url).find("abcdef"), std::string::npos);
}

TEST(TextWithoutSecrets, KeepsWhatIsNoUrl) {
  for (const char* const text : {"a: b? c@d", "see 3:/4", "://?x", "", "https://"}) {
    EXPECT_EQ(without_secrets(text), text);
  }
}

}  // namespace
}  // namespace penstock::core
