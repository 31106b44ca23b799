// An index is plain data: entries that name storages, which name sources. A new one is put together from rows of
// others, whose numbers are moved.

#include "archive/composition.h"

#include <algorithm>
#include <utility>

#include "value/nodes.h"

namespace penstock::archive {
namespace {

/// The entries that a value leads to, each once, in order.
std::vector<std::size_t> entries_in(const Value& part) {
  using Node = ValueGraph::Node;
  std::vector<std::size_t> out;
  for_each_node(part, [&out](const Node& node) {
    if (const auto* entry = std::get_if<Node::Entry>(&node.scalar)) out.push_back(entry->index);
  });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

Composition::File& Composition::file_of(const Archive& from) {
  const detail::ArchiveState& state = detail::ArchiveState::of(from);
  for (File& file : files_) {
    if (file.state == &state) return file;
  }
  format::Index& index = out_->index;
  if (files_.empty()) {
    out_->format = state.format;
    out_->verify_checksums = state.verify_checksums;
  }
  files_.push_back({&state, static_cast<std::uint32_t>(index.sources.size()),
                    std::vector<std::size_t>(state.index.storages.size(), kNowhere)});
  index.sources.insert(index.sources.end(), state.index.sources.begin(), state.index.sources.end());
  out_->open_seconds += state.open_seconds;
  out_->open_traffic += state.open_traffic;
  for (const std::string& name : state.index.unknown_globals) {
    if (std::ranges::find(index.unknown_globals, name) == index.unknown_globals.end()) {
      index.unknown_globals.push_back(name);
    }
  }
  return files_.back();
}

std::size_t Composition::storage_of(File& file, std::size_t storage) {
  std::size_t& number = file.storages[storage];
  if (number == kNowhere) {
    number = out_->index.storages.size();
    out_->index.storages.push_back(file.state->index.storages[storage]);
    out_->index.storages.back().source += file.first_source;
  }
  return number;
}

Value Composition::add(const Archive& from, std::size_t entry, std::string name) {
  File& file = file_of(from);
  TensorEntry added = from.entries()[entry];
  added.name = std::move(name);
  added.storage = storage_of(file, added.storage);
  out_->index.entries.push_back(std::move(added));
  return Value::entry(out_->index.entries.size() - 1);
}

Value Composition::add(const Archive& from, const Value& part) {
  std::vector<std::size_t> positions(from.entries().size(), kNowhere);
  for (const std::size_t entry : entries_in(part)) {
    positions[entry] = *add(from, entry, from.entries()[entry].name).entry_index();
  }
  return with_entries(part, positions);
}

Archive Composition::take(const Value& structure) {
  out_->index.structure = structure;
  return detail::ArchiveState::handle(std::move(out_));
}

}  // namespace penstock::archive
