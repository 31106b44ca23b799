// A page has up to 5000 blobs and a marker for the next, which is empty behind the last. Names that XML cannot hold are
// percent-encoded, and say so. Accounts with a hierarchical namespace list their folders as blobs too.
//
// https://learn.microsoft.com/rest/api/storageservices/list-blobs

#include "io/remote/azure_list.h"

#include "io/remote/xml.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

Query azure_query(std::string_view prefix, bool deep, const std::string& token) {
  Query query = {{"comp", "list"}, {"restype", "container"}};
  if (!prefix.empty()) query.emplace_back("prefix", prefix);
  if (!deep) query.emplace_back("delimiter", "/");
  if (!token.empty()) query.emplace_back("marker", token);
  return query;
}

std::string azure_name(std::string_view one) {
  const auto name = xml_element(one, "Name");
  if (!name) return {};
  const bool is_coded = name->attributes.find("Encoded=\"true\"") != name->attributes.npos;
  return is_coded ? url_decoded(xml_decoded(name->content), false) : xml_decoded(name->content);
}

/// A page that says nothing of a next one is no whole page.
std::string azure_marker(const std::string& xml, const std::string& name) {
  if (const auto marker = xml_element(xml, "NextMarker")) return xml_decoded(marker->content);
  throw Error(ErrorCode::kIo,
              "the store does not say whether there are more objects than it lists, so that some may be missing; try "
              "again, and check AZURE_STORAGE_BLOB_ENDPOINT",
              {.path = name});
}

std::string read_azure_page(const std::string& xml, const std::string& name, std::string_view prefix, Objects& out) {
  require_whole(xml, "EnumerationResults", name);
  each_element(xml, "Blob", [&](std::string_view one) {
    if (xml_text(one, "ResourceType") == "directory") return;
    out.objects.push_back(
        {wanted_key(azure_name(one), prefix, name), size_from(xml_text(one, "Content-Length"), name)});
  });
  each_element(xml, "BlobPrefix",
               [&](std::string_view one) { out.folders.push_back(wanted_key(azure_name(one), prefix, name)); });
  return azure_marker(xml, name);
}

}  // namespace

const Listing kAzureListing{.query = azure_query, .read = read_azure_page};

}  // namespace penstock::io::remote
