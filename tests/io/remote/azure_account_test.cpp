// Which account, place and proof follow from variables and from a connection string; and that what proves one account
// goes to no other.

#include "io/remote/azure_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "io/remote/values.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::io::remote {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kNames[] = {
    "AZURE_STORAGE_ACCOUNT",   "AZURE_STORAGE_ACCOUNT_NAME",      "AZURE_STORAGE_KEY",   "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_TOKEN", "AZURE_STORAGE_BLOB_ENDPOINT"};

using Variables = std::map<std::string, std::string>;

AzureAccount account_of(const Variables& variables, const std::string& endpoint = {}) {
  auto values = std::make_shared<Values>();
  for (const char* const name : kNames) values->of.emplace(name, "");
  for (const auto& [name, value] : variables) values->of.insert_or_assign(name, value);
  const ValuesScope scope(values);
  return azure_account(endpoint);
}

const std::string kString =
    "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=S2V5PT0=;EndpointSuffix=core.chinacloudapi.cn";

TEST(AzureAccounts, AreNamedByVariables) {
  const AzureAccount found = account_of(
      {{"AZURE_STORAGE_ACCOUNT", "acct"}, {"AZURE_STORAGE_KEY", "S2V5"}, {"AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=x"}});
  EXPECT_EQ(found.name, "acct");
  EXPECT_EQ(found.endpoint, "https://acct.blob.core.windows.net");
  EXPECT_EQ(found.key, "S2V5");
  EXPECT_EQ(found.sas, "sv=1&sig=x");
}

TEST(AzureAccounts, AreNamedByAConnectionString) {
  const AzureAccount found = account_of({{"AZURE_STORAGE_CONNECTION_STRING", kString}});
  EXPECT_EQ(found.name, "acct");
  EXPECT_EQ(found.endpoint, "https://acct.blob.core.chinacloudapi.cn");
  EXPECT_EQ(found.key, "S2V5PT0=");
  const AzureAccount signed_one =
      account_of({{"AZURE_STORAGE_CONNECTION_STRING",
                   "BlobEndpoint=https://acct.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=a%3D"}});
  EXPECT_EQ(signed_one.name, "acct");
  EXPECT_EQ(signed_one.endpoint, "https://acct.blob.core.windows.net");
  EXPECT_EQ(signed_one.sas, "sv=1&sig=a%3D");
  const AzureAccount emulator = account_of({{"AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true"}});
  EXPECT_EQ(emulator.name, "devstoreaccount1");
  EXPECT_EQ(emulator.endpoint, "http://127.0.0.1:10000/devstoreaccount1");
}

TEST(AzureAccounts, AreNamedByTheEndpoint) {
  EXPECT_EQ(account_of({{"AZURE_STORAGE_BLOB_ENDPOINT", "http://127.0.0.1:10000/devstoreaccount1/"}}).name,
            "devstoreaccount1");
  EXPECT_EQ(account_of({{"AZURE_STORAGE_BLOB_ENDPOINT", "https://acct.privatelink.example"}}).name, "acct");
}

TEST(AzureAccounts, OfAConnectionStringProveNothingElsewhere) {
  for (const Variables& others : {Variables{{"AZURE_STORAGE_ACCOUNT", "other"}},
                                  Variables{{"AZURE_STORAGE_BLOB_ENDPOINT", "https://other.example"}},
                                  Variables{{"AZURE_STORAGE_TOKEN", "token"}}}) {
    Variables all = others;
    all.emplace("AZURE_STORAGE_CONNECTION_STRING", kString);
    EXPECT_EQ(account_of(all).key, "") << others.begin()->first;
  }
}

TEST(AzureAccounts, ThatCannotBeRightAreRefused) {
  for (const Variables& bad :
       {Variables{}, Variables{{"AZURE_STORAGE_ACCOUNT", "evil.example/"}}, Variables{{"AZURE_STORAGE_ACCOUNT", "UP"}},
        Variables{{"AZURE_STORAGE_CONNECTION_STRING", "AccountKey=hunter2"}},
        Variables{{"AZURE_STORAGE_BLOB_ENDPOINT", "ftp://h/a"}},
        Variables{{"AZURE_STORAGE_BLOB_ENDPOINT", "https://h/a?sig=hunter2"}},
        Variables{{"AZURE_STORAGE_BLOB_ENDPOINT", "https://u:hunter2@h/a"}}}) {
    const auto error = test::error_of([&] { account_of(bad); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->what(), Not(HasSubstr("hunter2")));
  }
}

TEST(ConnectionStrings, HaveParts) {
  EXPECT_EQ(connection_part("A=1; b = x=y ;;C", "B"), "x=y");
  EXPECT_EQ(connection_part("A=1", "AA"), "");
  EXPECT_EQ(connection_part("", "A"), "");
}

TEST(AzureAccounts, OfAUrlGoBeforeVariables) {
  const std::string url = "https://acct.blob.core.windows.net";
  const AzureAccount bare = account_of({{"AZURE_STORAGE_KEY", "S2V5"}}, url);
  EXPECT_EQ(bare.name, "acct");
  EXPECT_EQ(bare.endpoint, url);
  EXPECT_EQ(bare.key, "S2V5");
  EXPECT_EQ(account_of({{"AZURE_STORAGE_CONNECTION_STRING", kString}}, url).key, "S2V5PT0=");
  EXPECT_EQ(account_of({{"AZURE_STORAGE_ACCOUNT", "acct"}}, "https://acct.blob.core.chinacloudapi.cn").endpoint,
            "https://acct.blob.core.chinacloudapi.cn");
  // A private way to the same account.
  EXPECT_EQ(account_of({{"AZURE_STORAGE_BLOB_ENDPOINT", "http://127.0.0.1:1/acct"}}, url).endpoint,
            "http://127.0.0.1:1/acct");
}

TEST(AzureAccounts, OfAUrlGetNothingOfAnother) {
  const std::string url = "https://other.blob.core.windows.net";
  for (const Variables& variables :
       {Variables{{"AZURE_STORAGE_ACCOUNT", "acct"}, {"AZURE_STORAGE_KEY", "S2V5"}, {"AZURE_STORAGE_SAS_TOKEN", "x"}},
        Variables{{"AZURE_STORAGE_CONNECTION_STRING", kString}},
        Variables{{"AZURE_STORAGE_BLOB_ENDPOINT", "http://127.0.0.1:1/acct"}, {"AZURE_STORAGE_KEY", "S2V5"}}}) {
    const AzureAccount found = account_of(variables, url);
    EXPECT_EQ(found.name, "other");
    EXPECT_EQ(found.endpoint, url);
    EXPECT_EQ(found.key, "");
    EXPECT_EQ(found.sas, "");
  }
}

}  // namespace
}  // namespace penstock::io::remote
