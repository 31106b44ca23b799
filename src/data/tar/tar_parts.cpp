// A member with tensors is a file of its own that lies in the shard, so KnownLayouts finds its sample as it does for
// files: a small one is in memory, a large one is read when the batch has its block.
// All other members are small values. Samples of a dataset mostly have the same fields of the same kinds, so the layout
// of the last sample is used again where only numbers and texts differ.
#include "data/tar/tar_parts.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/format.h"
#include "core/shown_url.h"
#include "core/text.h"
#include "data/sample/value_layout.h"
#include "format/tar/feed.h"
#include "format/tar/header.h"
#include "io/source/window_source.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

using format::FieldKind;
using format::TarMember;

/// A member may be made to unpack to a thousand times its size.
constexpr std::size_t kMostUnpacked = std::size_t{1} << 30;

/// `error` of a member: its place in the shard, and its name.
Error of_member(const Error& error, const TarPart& part, const TarShard& shard, std::uint64_t base) {
  const std::uint64_t offset = base + error.offset().value_or(0);
  const std::string inner = error.tensor().empty() ? "" : core::format(": {}", error.tensor());
  return error.at(
      {.path = core::shown_path(shard.path), .offset = offset, .tensor = core::escaped(part.member.name) + inner});
}

LayoutPtr value_layout_of(const Value& value, StructureInterner& interner) {
  const auto no_tensor = [](const Value&) -> TensorLayout { return {DType::uint8, Shape{}, Strides{}}; };
  return value_layout(value, {}, no_tensor, "choose fields with keys", interner);
}

/// A layout as `before`, with the tensors and scalars of other parts in it.
LayoutPtr alike(const Layout& before, std::span<const LayoutPtr> parts) {
  auto out = std::make_shared<Layout>();
  out->structure = before.structure;
  for (const LayoutPtr& part : parts) {
    out->tensors.insert(out->tensors.end(), part->tensors.begin(), part->tensors.end());
    out->scalars.insert(out->scalars.end(), part->scalars.begin(), part->scalars.end());
  }
  return out;
}

std::string fields_text(const TarSampleParts& sample) {
  std::string out;
  for (const TarPart& part : sample.parts)
    out += core::format("{}{}", out.empty() ? "" : ", ", core::quoted(part.field));
  return out;
}

const TarPart& find(const TarSampleParts& sample, const std::string& key, const TarShard& shard) {
  for (const TarPart& part : sample.parts) {
    if (part.field == key) return part;
  }
  throw Error(ErrorCode::kKeyNotFound,
              core::format("the sample {} has no field {}; it has {}", core::quoted(sample.key), core::quoted(key),
                           fields_text(sample)),
              {.path = core::shown_path(shard.path), .offset = sample.parts.front().member.begin});
}

/// Tells fields that come twice. Samples have few, which are compared; a hostile one may have millions.
class Fields {
 public:
  /// Whether `parts` has no such field yet.
  bool add(std::span<const TarPart> parts, const std::string& field) {
    constexpr std::size_t kFew = 32;
    if (parts.size() < kFew) {
      return std::none_of(parts.begin(), parts.end(), [&](const TarPart& part) { return part.field == field; });
    }
    if (known_.empty()) {
      for (const TarPart& part : parts) known_.insert(part.field);
    }
    return known_.insert(field).second;
  }

 private:
  std::unordered_set<std::string> known_;
};

void require_content(const TarPart& part, const TarShard& shard) {
  const TarMember& member = part.member;
  const ErrorContext where{
      .path = core::shown_path(shard.path), .offset = member.data, .tensor = core::escaped(member.name)};
  if (member.kind != TarMember::Kind::kFile) {
    throw Error(
        ErrorCode::kUnsupported,
        core::format("the member is {}, whose content is not in the archive as it is; write the shard with plain "
                     "files (tar --dereference --hard-dereference), or leave the field out with keys",
                     kind_text(member.kind)),
        where);
  }
  if (!member.is_cut) return;
  throw Error(
      ErrorCode::kTruncated,
      core::format("the shard ends within this member, which has {} and padding from here on; copy the shard again, "
                   "or leave its last sample out",
                   core::format_bytes(member.size)),
      where);
}

/// The content of a member with `.gz` behind its name, in memory that stays as that of others does.
std::span<const std::byte> unpacked(std::span<const std::byte> content, const std::string& path, Scratch& scratch) {
  const std::vector<std::byte> bytes = format::unpack_member(content, kMostUnpacked, path);
  const std::span<std::byte> out(scratch.arena.allocate(bytes.size(), format::kTarBlock), bytes.size());
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

}  // namespace

bool is_of_headers(const Error& error) noexcept {
  return error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kTruncated ||
         error.code() == ErrorCode::kLimit || error.code() == ErrorCode::kUnsupported;
}

void throw_not_of_index(const std::string& path, std::uint64_t offset) {
  throw Error(
      ErrorCode::kChanged,
      "what lies here is no sample of the index: the shard was written anew, or the index beside it (.idx) is of "
      "another; make the dataset anew, and delete an index that is wrong",
      {.path = path, .offset = offset});
}

std::optional<std::string> edge_key(format::TarBytes& bytes, const std::string& path, std::uint64_t begin,
                                    std::uint64_t end, Edge edge) {
  std::optional<std::string> out;
  format::TarWalk walk(bytes, path, begin);
  while (walk.at() < end) {
    const auto member = walk.next();
    if (!member || member->begin >= end) return out;
    if (auto name = format::sample_name(*member)) out = std::move(name->key);
    if (out && edge == Edge::kFirst) return out;
  }
  return walk.at() == end ? out : std::nullopt;
}

TarSampleParts parts_in(format::TarBytes& bytes, const std::string& path, std::uint64_t begin, std::uint64_t end) {
  TarSampleParts out;
  Fields fields;
  format::TarWalk walk(bytes, path, begin);
  while (walk.at() < end) {
    auto member = walk.next();
    if (!member || member->begin >= end) break;  // zero blocks were passed by, and the archive that was appended begins
    auto name = format::sample_name(*member);
    if (!name) continue;
    if (out.parts.empty()) {
      out.key = std::move(name->key);
    } else if (name->key != out.key) {
      throw_not_of_index(path, member->begin);
    }
    if (format::is_own_field(name->field) || !fields.add(out.parts, name->field)) {
      throw Error(ErrorCode::kCorrupt,
                  core::format("the sample {} has the field {} twice; write the shard anew", core::quoted(out.key),
                               core::quoted(name->field)),
                  {.path = path, .offset = member->begin, .tensor = core::escaped(member->name)});
    }
    out.parts.push_back({*std::move(member), std::move(name->field)});
  }
  if (out.parts.empty()) throw_not_of_index(path, begin);
  return out;
}

Sample TarAssembler::sample(const TarSampleParts& sample, const TarShard& shard, const TarFields& fields,
                            Contents& contents, const Work& work) {
  names_.clear();
  pieces_.clear();
  const auto add = [&](const std::string& name, FieldSample piece) {
    names_.push_back(name);
    pieces_.push_back(std::move(piece));
  };
  const auto add_text = [&](std::string_view name, const std::string& text) {
    add(std::string(name), {value_layout_of(Value::string(text), work.scratch.structures)});
  };
  if (fields.keys.empty()) {
    add_text(format::kSampleKey, sample.key);
    for (const TarPart& part : sample.parts) add(part.field, piece_of(part, shard, fields.raw, contents, work));
  }
  for (const std::string& key : fields.keys) {
    if (key == format::kSampleKey) {
      add_text(key, sample.key);
    } else if (key == format::kSampleUrl) {
      add_text(key, core::shown_path(shard.path));
    } else {
      add(key, piece_of(find(sample, key, shard), shard, fields.raw, contents, work));
    }
  }
  const Layout* const layout = join(pieces_, work.scratch);
  const std::span<Payload> payloads = work.scratch.arena.array<Payload>(layout->tensors.size());
  auto next = payloads.begin();
  for (const FieldSample& piece : pieces_) next = std::copy(piece.payloads.begin(), piece.payloads.end(), next);
  return {layout, {payloads.data()}};
}

TarAssembler::FieldSample TarAssembler::piece_of(const TarPart& part, const TarShard& shard, bool raw,
                                                 Contents& contents, const Work& work) {
  require_content(part, shard);
  const auto packed = raw ? std::nullopt : format::gzipped_field(part.field);
  const FieldKind kind = raw ? FieldKind::kBytes : format::field_kind(packed.value_or(part.field));
  try {
    std::span<const std::byte> bytes = contents.content(part);
    if (packed) bytes = unpacked(bytes, shard.path, work.scratch);
    if (kind == FieldKind::kTensors) return tensors_of(part, bytes, shard, work);
    // Offsets of errors count from the member's begin, which of_member adds.
    const Value value = format::field_value(kind, bytes, shard.path, 0);
    return {value_layout_of(value, work.scratch.structures)};
  } catch (const Error& error) {
    throw of_member(error, part, shard, part.member.data);
  }
}

TarAssembler::FieldSample TarAssembler::tensors_of(const TarPart& part, std::span<const std::byte> bytes,
                                                   const TarShard& shard, const Work& work) {
  KnownLayouts& layouts = layouts_[part.field];
  layouts.expect_members();
  const bool is_large = bytes.empty() && part.member.size != 0;
  const auto window = [&] { return io::window_of(shard.file->source(), part.member.data, part.member.size); };
  const Sample found = is_large ? layouts.large.sample(window(), {}, DescriptorLimit(), work)
                                : layouts.small.sample(WholeFile{.bytes = bytes, .path = shard.path, .keys = {}}, work);
  return {found.layout->shared_from_this(), {found.payloads, found.layout->tensors.size()}};
}

/// The dict of the pieces, whose names are those of the fields.
const Layout* TarAssembler::join(std::span<const FieldSample> pieces, Scratch& scratch) {
  bool is_same = layout_ && names_ == joined_names_;
  bool is_alike = is_same;
  for (std::size_t i = 0; is_alike && i < pieces.size(); ++i) {
    is_same = is_same && pieces[i].layout == joined_[i];
    is_alike = pieces[i].layout->structure == joined_[i]->structure;
  }
  if (is_same && is_alike) return layout_.get();
  joined_names_ = names_;
  joined_.clear();
  for (const FieldSample& piece : pieces) joined_.push_back(piece.layout);
  layout_ = is_alike ? alike(*layout_, joined_) : dict_layout(names_, joined_, scratch.structures);
  scratch.objects.push_back(layout_);  // while samples of the batch have it
  return layout_.get();
}

}  // namespace penstock::data
