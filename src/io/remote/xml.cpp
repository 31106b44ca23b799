#include "io/remote/xml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include "core/utf8.h"

namespace penstock::io::remote {
namespace {

constexpr std::size_t kMostEntity = 16;
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kBehindName = " \t\r\n/>";

constexpr auto kEntities = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}});

/// What "&amp;", "&#10;" and "&#xA;" stand for; nothing for what is no entity.
std::string entity(std::string_view text) {
  for (const auto& [name, stands_for] : kEntities) {
    if (text == name) return std::string(stands_for);
  }
  std::string out;
  if (!text.starts_with("&#")) return out;
  const bool is_hex = text.starts_with("&#x");
  const char* const end = text.data() + text.size() - 1;
  std::uint32_t value = 0;
  const auto read = std::from_chars(text.data() + (is_hex ? 3 : 2), end, value, is_hex ? 16 : 10);
  const bool is_number = read.ec == std::errc() && read.ptr == end;
  if (is_number && value > 0 && value <= 0x10FFFF) core::append_utf8(out, value);
  return out;
}

/// Where the tag ends that begins at `at`: behind its '>'. An attribute may have one in quotes. npos for none.
std::size_t behind_tag(std::string_view xml, std::size_t at) {
  char quote = 0;
  for (; at < xml.size(); ++at) {
    if (quote == 0 && xml[at] == '>') return at + 1;
    if (quote == 0 && (xml[at] == '"' || xml[at] == '\'')) {
      quote = xml[at];
    } else if (xml[at] == quote) {
      quote = 0;
    }
  }
  return xml.npos;
}

/// Where the tag "</name>" begins; npos for none. `name` has its prefix.
std::size_t closing_tag(std::string_view xml, std::string_view name, std::size_t at) {
  for (at = xml.find("</", at); at != xml.npos; at = xml.find("</", at + 2)) {
    const std::string_view rest = xml.substr(at + 2);
    if (!rest.starts_with(name)) continue;
    const std::size_t end = rest.find_first_not_of(kBlanks, name.size());
    if (end != rest.npos && rest[end] == '>') return at;
  }
  return xml.npos;
}

}  // namespace

std::optional<XmlElement> xml_element(std::string_view xml, std::string_view tag) {
  for (std::size_t at = xml.find('<'); at != xml.npos; at = xml.find('<', at + 1)) {
    const std::string_view name =
        xml.substr(at + 1, std::min(xml.find_first_of(kBehindName, at + 1), xml.size()) - at - 1);
    if (name.substr(name.find(':') + 1) != tag) continue;  // npos + 1 is 0
    const std::size_t begin = behind_tag(xml, at);
    if (begin == xml.npos) return std::nullopt;
    const std::string_view attributes = xml.substr(at + 1 + name.size(), begin - at - 2 - name.size());
    if (attributes.ends_with('/')) return XmlElement{attributes, {}, xml.substr(begin)};
    const std::size_t end = closing_tag(xml, name, begin);
    if (end == xml.npos) return std::nullopt;
    return XmlElement{attributes, xml.substr(begin, end - begin), xml.substr(end)};
  }
  return std::nullopt;
}

std::string xml_decoded(std::string_view text) {
  std::string out;
  for (std::size_t at = text.find('&'); at != text.npos; at = text.find('&')) {
    out += text.substr(0, at);
    text.remove_prefix(at);
    const std::string_view one = text.substr(0, text.substr(0, kMostEntity).find(';') + 1);
    const std::string stands_for = entity(one);
    out += stands_for.empty() ? "&" : stands_for;
    text.remove_prefix(stands_for.empty() ? 1 : one.size());
  }
  return out.append(text);
}

std::string xml_text(std::string_view xml, std::string_view tag) {
  const auto element = xml_element(xml, tag);
  return element ? xml_decoded(element->content) : std::string();
}

}  // namespace penstock::io::remote
