#pragma once

// The few things that are read from the XML of stores: elements by their names, whatever prefix and attributes these
// have. Comments, CDATA and declared entities are not understood.

#include <optional>
#include <string>
#include <string_view>

namespace penstock::io::remote {

struct XmlElement {
  std::string_view attributes;  ///< as they are written
  std::string_view content;
  std::string_view behind;  ///< the text behind the content
};

/// The first element of that name; nothing where there is none, or none that ends.
std::optional<XmlElement> xml_element(std::string_view xml, std::string_view tag);

/// The text of the first element `tag`, entities decoded; empty where there is none.
std::string xml_text(std::string_view xml, std::string_view tag);
/// "&amp;" as "&".
std::string xml_decoded(std::string_view text);

/// take(content) of each element of that name.
template <class Take>
void each_element(std::string_view xml, std::string_view tag, Take take) {
  while (const auto element = xml_element(xml, tag)) {
    take(element->content);
    xml = element->behind;
  }
}

}  // namespace penstock::io::remote
