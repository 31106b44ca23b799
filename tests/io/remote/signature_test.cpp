// AWS's own vectors: the Signature Version 4 test suite, and the examples of S3's documentation
// (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).

#include "io/remote/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "io/remote/sha256.h"

namespace penstock::io::remote {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::string sha(std::string_view text) { return hex(sha256(text)); }

TEST(Sha256, GivesTheVectorsOfFips180) {
  EXPECT_EQ(sha(""), kEmptyHash);
  EXPECT_EQ(sha("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PadsAtEachEdgeOfABlock) {
  // From Python's hashlib.
  EXPECT_EQ(sha(std::string(55, 'x')), "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(sha(std::string(56, 'x')), "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  EXPECT_EQ(sha(std::string(64, 'x')), "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
}

TEST(HmacSha256, GivesTheVectorsOfRfc4231) {
  const std::vector<std::uint8_t> short_key(20, 0x0b);
  EXPECT_EQ(hex(hmac_sha256(short_key, "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  const std::vector<std::uint8_t> long_key(131, 0xaa);
  EXPECT_EQ(hex(hmac_sha256(long_key, "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

constexpr std::string_view kSuiteTime = "20150830T123600Z";
constexpr std::string_view kDocTime = "20130524T000000Z";
const std::string kDocHost = "examplebucket.s3.amazonaws.com";

struct Vector {
  std::string name;
  Signable request;
  std::string signed_headers;
  std::string signature;
};

Signable suite(std::string_view method, Query query) {
  return {.method = method,
          .query = std::move(query),
          .headers = {{"x-amz-date", std::string(kSuiteTime)}, {"host", "example.amazonaws.com"}},
          .payload_hash = kEmptyHash};
}

Signable documented(std::string_view method, std::string_view path, Query query,
                    std::vector<std::pair<std::string, std::string>> headers, std::string_view hash) {
  headers.insert(headers.end(), {{"host", kDocHost}, {"x-amz-date", std::string(kDocTime)}});
  headers.emplace_back("x-amz-content-sha256", std::string(hash));
  return {
      .method = method, .path = path, .query = std::move(query), .headers = std::move(headers), .payload_hash = hash};
}

TEST(Signature, GivesTheVectorsOfTheTestSuite) {
  const Keys keys{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
  const std::vector<Vector> vectors = {
      {"get-vanilla", suite("GET", {}), "host;x-amz-date",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-vanilla-query-order-key-case", suite("GET", {{"Param2", "value2"}, {"Param1", "value1"}}),
       "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"post-vanilla", suite("POST", {}), "host;x-amz-date",
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
  };
  for (const Vector& vector : vectors) {
    const std::string found =
        authorization(vector.request, keys, {.region = "us-east-1", .service = "service", .timestamp = kSuiteTime});
    EXPECT_EQ(found, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" +
                         vector.signed_headers + ", Signature=" + vector.signature)
        << vector.name;
  }
}

TEST(Signature, GivesTheExamplesOfS3) {
  const Keys keys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
  const std::string body_hash = hex(sha256("Welcome to Amazon S3."));
  const std::string path = percent_encoded("/test$file.text", true);
  const std::vector<Vector> vectors = {
      {"GET Object", documented("GET", "/test.txt", {}, {{"range", "bytes=0-9"}}, kEmptyHash),
       "host;range;x-amz-content-sha256;x-amz-date",
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {"PUT Object",
       documented("PUT", path, {},
                  {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                  body_hash),
       "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {"GET Bucket Lifecycle", documented("GET", "/", {{"lifecycle", ""}}, {}, kEmptyHash),
       "host;x-amz-content-sha256;x-amz-date", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {"GET Bucket", documented("GET", "/", {{"prefix", "J"}, {"max-keys", "2"}}, {}, kEmptyHash),
       "host;x-amz-content-sha256;x-amz-date", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
  for (const Vector& vector : vectors) {
    const std::string found = authorization(vector.request, keys, {.region = "us-east-1", .timestamp = kDocTime});
    EXPECT_THAT(found, HasSubstr("SignedHeaders=" + vector.signed_headers + ",")) << vector.name;
    EXPECT_THAT(found, EndsWith("Signature=" + vector.signature)) << vector.name;
  }
}

TEST(Signature, EncodesAllButUnreservedCharacters) {
  EXPECT_EQ(percent_encoded("a-b_c.d~e/f", true), "a-b_c.d~e/f");
  EXPECT_EQ(percent_encoded("a b/c+d=\xc3\xa9,(:)%20", false), "a%20b%2Fc%2Bd%3D%C3%A9%2C%28%3A%29%2520");
  // Sorted by what is encoded, and names without a value keep their '='.
  EXPECT_EQ(query_text({{"b", "\xc3\xa4"}, {"a", ""}, {"a-b", "1"}}), "a=&a-b=1&b=%C3%A4");
}

}  // namespace
}  // namespace penstock::io::remote
