#pragma once

// From the bytes of one sample of a shard to the sample: its members, what each holds, and one layout for all.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/files/known_layouts.h"
#include "data/sample/sample.h"
#include "data/sample/work.h"
#include "data/tar/tar_shard.h"
#include "format/tar/members.h"
#include "format/tar/sample_name.h"
#include "penstock/error.h"

namespace penstock::data {

/// What a dataset of shards was asked for.
struct TarFields {
  std::vector<std::string> keys = {};  ///< these alone, in this order; empty: all, and "__key__"
  bool raw = false;                    ///< the bytes of each field, whatever it holds
};

/// A member of the sample at hand.
struct TarPart {
  format::TarMember member;
  std::string field;
};

/// The members of one sample: all that follow one another with one key.
struct TarSampleParts {
  std::string key;
  std::vector<TarPart> parts;
};

/// Walks over the headers of a sample that begins at `begin` and ends before `end`. kCorrupt for a field that comes
/// twice, kChanged where the bytes there are no sample of one key any more.
TarSampleParts parts_in(format::TarBytes& bytes, const std::string& path, std::uint64_t begin, std::uint64_t end);

enum class Edge : std::uint8_t { kFirst, kLast };
/// The key of the first or last member there that belongs to a sample; nothing where none does, or where the last one
/// ends behind `end`. Errors as TarWalk gives.
std::optional<std::string> edge_key(format::TarBytes& bytes, const std::string& path, std::uint64_t begin,
                                    std::uint64_t end, Edge edge);

/// Whether it may say that no header lies there, and not that reading failed.
bool is_of_headers(const Error& error) noexcept;

/// kChanged: what lies there is not what the index says.
[[noreturn]] void throw_not_of_index(const std::string& path, std::uint64_t offset);

/// Makes samples of parts; remembers the layouts of those before. One for each thread and dataset.
class TarAssembler : public Scratch::State {
 public:
  /// The sample of these parts. `content(part)` gives the bytes of a member, which stay until the Scratch is reset, or
  /// none: then the member is large, and is read when the batch has its block. Errors name the shard, key and member.
  class Contents {
   public:
    virtual ~Contents() = default;
    virtual std::span<const std::byte> content(const TarPart& part) = 0;
  };
  Sample sample(const TarSampleParts& parts, const TarShard& shard, const TarFields& fields, Contents& contents,
                const Work& work);

 private:
  struct FieldSample {
    LayoutPtr layout;
    std::span<const Payload> payloads = {};
  };
  FieldSample piece_of(const TarPart& part, const TarShard& shard, bool raw, Contents& contents, const Work& work);
  FieldSample tensors_of(const TarPart& part, std::span<const std::byte> bytes, const TarShard& shard,
                         const Work& work);
  const Layout* join(std::span<const FieldSample> pieces, Scratch& scratch);

  std::map<std::string, KnownLayouts, std::less<>> layouts_;  ///< by field
  std::vector<std::string> names_;                            ///< of the pieces of the sample at hand
  std::vector<FieldSample> pieces_;
  std::vector<std::string> joined_names_;  ///< of the last layout
  std::vector<LayoutPtr> joined_;
  LayoutPtr layout_;
};

/// Of a sample whose bytes lie in memory, the first of them at `begin` of the shard.
class WholeTarContents final : public TarAssembler::Contents {
 public:
  WholeTarContents(std::span<const std::byte> bytes, std::uint64_t begin) noexcept : bytes_(bytes), begin_(begin) {}
  std::span<const std::byte> content(const TarPart& part) override {
    return bytes_.subspan(static_cast<std::size_t>(part.member.data - begin_),
                          static_cast<std::size_t>(part.member.size));
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t begin_;
};

}  // namespace penstock::data
