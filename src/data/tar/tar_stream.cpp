// Shards from front to back, without an index. One thread walks over the headers and hands out each sample as its
// bytes; the workers take them apart (TarCell), all at once, as they do with samples of a dataset of shards. To begin
// at a later sample the shards are walked over again, and nothing before it is taken apart.
#include "data/tar/tar_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "core/format.h"
#include "core/shown_url.h"
#include "core/system_error.h"
#include "core/warning.h"
#include "data/dataset_impl.h"
#include "data/sample/blame.h"
#include "data/stream/cell.h"
#include "data/stream/node.h"
#include "data/tar/shard_remarks.h"
#include "format/tar/feed.h"
#include "format/tar/sample_walk.h"
#include "io/file/open_path.h"
#include "io/locations.h"
#include "io/move/background_read.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
/// Behind a URL, where each read takes a round trip: so much is asked for at once, and so often ahead.
constexpr std::size_t kRemotePiece = std::size_t{8} << 20;
constexpr std::size_t kRemoteAhead = 4;

/// What the walk hands to the workers: which shard, where in it, and the bytes.
Value packed(std::int64_t shard, std::uint64_t begin, std::span<const std::byte> bytes) {
  Tensor memory = Tensor::empty(Shape{static_cast<std::int64_t>(bytes.size())}, DType::uint8);
  if (!bytes.empty()) std::memcpy(memory.data(), bytes.data(), bytes.size());
  return Value::tuple({Value::integer(shard), Value::integer(static_cast<std::int64_t>(begin)), Value::tensor(memory)});
}

/// A shard behind a URL, whose next pieces are under way; where it cannot be opened, that is told by opening it again.
using RemoteShard = std::shared_ptr<io::ReadFromFront>;

RemoteShard read_ahead(const std::string& path) {
  return std::make_shared<io::ReadFromFront>(open_source(path), kRemotePiece, kRemoteAhead);
}

/// The bytes of the shards of a list, each from front to back. When all of one was asked for, the next one is opened,
/// so that a server has something to do where one shard ends.
class ShardBytes {
 public:
  explicit ShardBytes(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  std::size_t size() const noexcept { return paths_.size(); }
  const std::string& path(std::size_t shard) const { return paths_[shard]; }
  /// What reads that shard. It must not outlive this.
  format::ReadOn open(std::size_t shard) {
    RemoteShard current = next_at_ == shard ? std::exchange(next_, nullptr) : nullptr;
    if (!current) current = read_ahead(paths_[shard]);
    return [this, shard, current](std::span<std::byte> into) {
      if (current->asked_for_all()) ask_behind(shard);
      return current->read(into);
    };
  }

 private:
  void ask_behind(std::size_t shard) {
    if (next_at_ == shard + 1 || shard + 1 == paths_.size() || !io::waits_for_server(paths_[shard + 1])) return;
    next_at_ = shard + 1;
    try {
      next_ = read_ahead(paths_[next_at_]);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) throw;
      next_ = nullptr;
    }
  }

  std::vector<std::string> paths_;
  std::size_t next_at_ = 0;  ///< of the shard that was opened ahead
  RemoteShard next_;
};

/// The samples of one shard, one after the other.
class ShardWalk {
 public:
  ShardWalk(ShardBytes& shards, std::size_t shard)
      : shown_(core::shown_path(shards.path(shard))),
        feed_(opened(shards, shard), shown_, kChunk),
        walk_(feed_, shown_) {}

  /// Where the next sample lies; nothing at the end.
  std::optional<format::TarSampleWalk::Span> next() {
    auto out = walk_.next();
    if (out) ++samples_;
    return out;
  }
  std::int64_t samples() const noexcept { return samples_; }
  const format::TarSampleWalk& walk() const noexcept { return walk_; }
  /// The bytes of the sample that `next` gave, fewer where the shard was cut; valid until the next call.
  std::span<const std::byte> bytes(const format::TarSampleWalk::Span& sample) {
    return feed_.view(sample.begin, static_cast<std::size_t>(sample.end - sample.begin));
  }
  void forget(const format::TarSampleWalk::Span& sample) { feed_.forget(sample.end); }

 private:
  static format::ReadOn opened_pipe(const std::string& path) {
    const bool is_input = path == "-";
    const auto held = std::make_shared<const io::FileDescriptor>(is_input ? io::FileDescriptor()
                                                                          : io::open_path(path, O_RDONLY | O_CLOEXEC));
    if (!is_input && !*held) core::throw_errno(errno, "cannot open the pipe", {.path = path});
    return [held, path](std::span<std::byte> into) {
      while (true) {
        const ssize_t got = ::read(*held ? held->get() : STDIN_FILENO, into.data(), into.size());
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno != EINTR) core::throw_errno(errno, "cannot read the pipe", {.path = path});
      }
    };
  }

  static format::ReadOn opened(ShardBytes& shards, std::size_t shard) {
    const std::string& path = shards.path(shard);
    format::ReadOn raw;
    if (io::waits_for_server(path)) {
      raw = shards.open(shard);
    } else if (is_pipe(path)) {
      raw = opened_pipe(path);
    } else {
      raw = [source = open_source(path), at = std::uint64_t{0}](std::span<std::byte> into) mutable {
        const std::uint64_t left = source.size() - at;
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left));
        source.read(at, into.first(count));
        at += count;
        return count;
      };
    }
    return unpacked_by_head(std::move(raw), core::shown_path(path));
  }

  /// Looks at the first bytes, and gives them again.
  static format::ReadOn unpacked_by_head(format::ReadOn raw, const std::string& shown) {
    std::array<std::byte, 8> head{};
    std::size_t known = 0;
    while (known < head.size()) {
      const std::size_t got = raw(std::span(head).subspan(known));
      if (got == 0) break;
      known += got;
    }
    const format::Packing packing = format::packing_of(std::span(head).first(known));
    format::ReadOn again = [head, known, at = std::size_t{0}, raw = std::move(raw)](std::span<std::byte> into) mutable {
      if (at == known) return raw(into);
      const std::size_t count = std::min(into.size(), known - at);
      std::memcpy(into.data(), head.data() + at, count);
      at += count;
      return count;
    };
    return format::unpacked(std::move(again), packing, shown);
  }

  std::string shown_;
  format::TarFeed feed_;
  format::TarSampleWalk walk_;
  std::int64_t samples_ = 0;
};

/// All shards, one after the other. What is wrong with a shard is thrown once, in place of a sample; the next shard
/// follows.
class ShardsWalk {
 public:
  using Warn = std::function<void(const std::string&)>;

  ShardsWalk(const ShardList& list, Warn warn) : list_(list), shards_(list.paths), warn_(std::move(warn)) {}

  /// Passes by so many samples, and shards that were wrong.
  void skip(std::int64_t count) {
    while (count > 0 && !is_over_) {
      try {
        if (const auto place = advance()) {
          shard_->forget(*place);
          --count;
        }
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kCancelled) throw;
        --count;
      }
    }
  }

  std::optional<Value> next() {
    while (!is_over_) {
      if (const auto place = advance()) return taken(*place);
    }
    return std::nullopt;
  }

 private:
  Value taken(const format::TarSampleWalk::Span& place) {
    try {
      Value out = packed(static_cast<std::int64_t>(at_), place.begin, shard_->bytes(place));
      shard_->forget(place);
      return out;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) leave();
      throw;
    }
  }
  /// The next sample of the shard at hand; nothing where it has no more, and is left.
  std::optional<format::TarSampleWalk::Span> advance() {
    if (at_ == shards_.size()) {
      is_over_ = true;
      remarks_.require_samples();
      return std::nullopt;
    }
    try {
      if (!shard_) shard_ = std::make_unique<ShardWalk>(shards_, at_);
      if (const auto place = shard_->next()) {
        remarks_.found_sample();
        tell();
        return place;
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) leave();
      throw;
    }
    const std::int64_t samples = shard_->samples();
    remarks_.add(shards_.path(at_), samples != 0, shard_->walk().strays(), shard_->walk().has_end());
    leave();
    tell();
    require_told(list_, at_ - 1, samples);
    return std::nullopt;
  }
  void tell() {
    for (const std::string& text : remarks_.take_warnings()) warn_(text);
  }
  void leave() {
    shard_.reset();
    ++at_;
  }

  ShardList list_;
  ShardBytes shards_;
  Warn warn_;
  ShardRemarks remarks_;
  std::size_t at_ = 0;
  bool is_over_ = false;
  std::unique_ptr<ShardWalk> shard_;
};

/// Tells each warning once, however often the shards are walked over.
ShardsWalk::Warn warn_once(std::function<void(const std::string&)> warn) {
  struct Told {
    std::mutex mutex;
    std::set<std::string> texts;
  };
  return [warn = std::move(warn), told = std::make_shared<Told>()](const std::string& text) {
    {
      const std::scoped_lock lock(told->mutex);
      if (!told->texts.insert(text).second) return;
    }
    core::tell_warning(warn, text);
  };
}

/// Takes samples apart: those of the batch at hand, as the walk gave them.
class TarCell final : public detail::DatasetImpl {
 public:
  TarCell(std::vector<std::string> paths, TarFields fields) : paths_(std::move(paths)), fields_(std::move(fields)) {}

  std::int64_t size() const override { return kEndless; }
  std::string describe(std::int64_t index) const override { return core::format("{}[{}]", name_of(paths_), index); }
  std::uint64_t read_bytes(std::int64_t) const override { return std::numeric_limits<std::uint64_t>::max(); }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    auto& assembler = work.scratch.state<TarAssembler>(this);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      work.call.check_cancelled();
      try {
        out[i] = assemble(item_at_hand(indices[i], work.call.items).value, assembler, work);
      } catch (const Error& error) {
        fail(out[i], i, error, work.call, work.scratch);
      }
    }
  }

  static std::string name_of(const std::vector<std::string>& paths) {
    const std::string first = core::shown_path(paths.front());
    return paths.size() == 1 ? first : core::format("{} and {} more", first, paths.size() - 1);
  }

 private:
  Sample assemble(const Value& packed, TarAssembler& assembler, const Work& work) const {
    const std::string& path = paths_[static_cast<std::size_t>(packed[0].as_int())];
    const auto begin = static_cast<std::uint64_t>(packed[1].as_int());
    const Tensor& memory = packed[2].as_tensor();
    work.scratch.tensors.push_back(memory);
    const std::span<const std::byte> all(static_cast<const std::byte*>(memory.data()), memory.nbytes());
    format::TarMemory bytes(all, begin);
    const TarShard shard{.path = path};
    const TarSampleParts parts = parts_in(bytes, core::shown_path(path), begin, bytes.size());
    WholeTarContents contents(all, begin);
    return assembler.sample(parts, shard, fields_, contents, work);
  }

  std::vector<std::string> paths_;
  TarFields fields_;
};

}  // namespace

SampleStream tar_stream(const ShardList& list, const TarFields& fields,
                        const std::function<void(const std::string&)>& warn) {
  const std::vector<std::string>& paths = list.paths;
  const bool is_once = std::any_of(paths.begin(), paths.end(), is_pipe);
  const auto open = [list, warn = warn_once(warn)](std::int64_t start) -> detail::NextSample {
    auto walk = std::make_shared<ShardsWalk>(list, warn);
    walk->skip(start);
    return [walk] { return walk->next(); };
  };
  const SampleStream walked = detail::stream_of(open, is_once ? detail::Begins::kOnce : detail::Begins::kAnywhere,
                                                {.name = TarCell::name_of(paths)});
  return SampleStream(walked.node(), Dataset(std::make_shared<TarCell>(paths, fields)));
}

}  // namespace penstock::data
