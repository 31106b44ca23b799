// Folders are listed level by level, and all folders of a level in parallel, because most of the time goes into waiting
// for the file system. A folder is listed once for all parts of the pattern that may match in it. A folder that an
// earlier listing knows, and that has not changed since, is not listed again.

#include "data/scan/folder_scan.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/task_pool.h"
#include "data/scan/name_match.h"
#include "data/scan/name_sort.h"
#include "data/scan/sample_extensions.h"

namespace penstock::data {

namespace {

/// Enough to keep remote file systems busy; on local ones the processors are the limit.
constexpr std::size_t kMaxThreads = 16;

/// Memory for listing a folder, kept for the next one, because folders of many files would need megabytes each time.
struct Scratch {
  std::string names;
  NameSorter sorter;
};

/// Lends a Scratch to each of up to kMaxThreads threads.
class Scratches {
 public:
  Scratches() { free_.reserve(kMaxThreads); }

  auto take() {
    const auto give_back = [this](Scratch* scratch) {
      const std::lock_guard lock(mutex_);
      free_.emplace_back(scratch);
    };
    const std::lock_guard lock(mutex_);
    if (free_.empty()) free_.push_back(std::make_unique<Scratch>());
    std::unique_ptr<Scratch, decltype(give_back)> out(free_.back().release(), give_back);
    free_.pop_back();
    return out;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

class Scanner {
 public:
  Scanner(std::span<const PatternPart> parts, ScanOptions&& options)
      : parts_(parts), exclude_(std::move(options.exclude)), keep_going_(options.keep_going) {
    for (Listing& listing : options.known) {
      std::string folder = listing.visit.folder;
      known_.try_emplace(std::move(folder), std::move(listing));
    }
  }

  Scan scan(const std::string& folder) {
    Scan out;
    root_ = folder;
    std::vector<Visit> visits;
    settle(folder, 0, visits);
    std::size_t threads = 1;
    while (!visits.empty()) {
      // usable_cpus reads several files, so it is asked once, and not for a single folder.
      if (threads == 1 && visits.size() > 1) threads = std::min(kMaxThreads, core::usable_cpus());
      std::vector<Listing> found(visits.size());
      std::atomic<std::size_t> fresh = 0;
      core::parallel_for(visits.size(), threads,
                         [&](std::size_t i) { fresh += try_look_into(visits[i], found[i], out) ? 1 : 0; });
      out.fresh += fresh;
      visits.clear();
      for (Listing& listing : found) {
        visits.insert(visits.end(), listing.next.begin(), listing.next.end());
        out.listings.push_back(std::move(listing));
      }
    }
    return out;
  }

 private:
  bool is_last(std::size_t part) const noexcept { return part + 1 == parts_.size(); }

  /// Adds the folders to look into so that `part` is matched with what lies in `folder`.
  void settle(const std::string& folder, std::uint32_t part, std::vector<Visit>& visits) const {
    const PatternPart& own = parts_[part];
    if (own.kind == PatternPart::Kind::kLiteral && !is_last(part)) {
      return settle(join(folder, own.text), part + 1, visits);
    }
    const auto same = [&](const Visit& visit) { return visit.folder == folder; };
    auto visit = std::find_if(visits.rbegin(), visits.rend(), same);
    if (visit == visits.rend()) {
      visits.push_back({folder, {}});
      visit = visits.rbegin();
    }
    if (std::find(visit->parts.begin(), visit->parts.end(), part) == visit->parts.end()) visit->parts.push_back(part);
    if (own.kind == PatternPart::Kind::kAnyDepth && !is_last(part)) settle(folder, part + 1, visits);
  }

  /// Advises to exclude the folder, unless it is the one that the caller named.
  Error with_advice(const Error& error, const Visit& visit) const {
    if (visit.folder == root_ || error.code() == ErrorCode::kOutOfMemory) return error;
    return {error.code(), error.message() + ", or leave the folder out with exclude", {.path = error.path()}};
  }

  bool try_look_into(const Visit& visit, Listing& found, Scan& out) const {
    try {
      return look_into(visit, found);
    } catch (const Error& error) {
      if (!keep_going_) throw with_advice(error, visit);
      const std::lock_guard lock(mutex_);
      out.refused.push_back(error);
      found = {.visit = visit, .identity = {}, .names = {}, .next = {}};
      return true;
    }
  }

  /// Returns true when the folder was listed, false when an earlier listing was still right.
  bool look_into(const Visit& visit, Listing& out) const {
    const auto known = known_.find(visit.folder);
    if (known != known_.end() && known->second.visit == visit && known->second.identity != FolderIdentity{} &&
        known->second.identity == identity_of(visit.folder)) {
      out = known->second;
      return false;
    }
    out.visit = visit;
    // Taken before listing, so that a change during the listing is noticed the next time.
    out.identity = lasting_identity_of(visit.folder);
    const auto scratch = scratches_.take();
    std::string& names = scratch->names;
    names.clear();
    const auto add = [&](std::string_view name) { names.append(name).push_back('\0'); };
    bool listed = false;
    for (const std::uint32_t part : visit.parts) {
      if (parts_[part].kind != PatternPart::Kind::kLiteral) {
        listed = true;
      } else if (kind_of(join(visit.folder, parts_[part].text)) == FileKind::kFile) {
        add(parts_[part].text);
      }
    }
    if (listed) {
      WayBack way_back(visit.folder);
      list_folder(visit.folder, [&](std::string_view name, FileKind kind) {
        if (!exclude_.empty() && exclude_.leaves_out(visit.folder, name)) return;
        if (kind == FileKind::kFile && takes_file(visit.parts, name)) add(name);
        if (kind == FileKind::kFolder || kind == FileKind::kLinkToFolder) enter(visit, name, kind, way_back, out.next);
      });
    }
    out.names = scratch->sorter.sorted(names);
    return true;
  }

  bool takes_file(std::span<const std::uint32_t> parts, std::string_view name) const {
    return std::any_of(parts.begin(), parts.end(), [&](std::uint32_t part) {
      const PatternPart& own = parts_[part];
      if (!is_last(part)) return false;
      if (own.kind == PatternPart::Kind::kTensorFile) return is_sample_name(name);
      if (own.kind == PatternPart::Kind::kAnyDepth) return name[0] != '.';
      return own.kind == PatternPart::Kind::kGlob && matches(own.text, name);
    });
  }

  void enter(const Visit& visit, std::string_view name, FileKind kind, WayBack& way_back,
             std::vector<Visit>& next) const {
    std::vector<Visit> found;
    for (const std::uint32_t part : visit.parts) {
      const PatternPart& own = parts_[part];
      if (own.kind == PatternPart::Kind::kAnyDepth) {
        const std::string folder = join(visit.folder, name);
        const bool ends = kind == FileKind::kFolder || !way_back.has(folder);
        if (name[0] != '.' && ends) settle(folder, part, found);
      } else if (own.kind == PatternPart::Kind::kGlob && !is_last(part) && matches(own.text, name)) {
        settle(join(visit.folder, name), part + 1, found);
      }
    }
    std::move(found.begin(), found.end(), std::back_inserter(next));
  }

  std::span<const PatternPart> parts_;
  Exclusion exclude_;
  bool keep_going_;
  std::string root_;
  std::unordered_map<std::string, Listing> known_;
  mutable Scratches scratches_;
  mutable std::mutex mutex_;
};

}  // namespace

std::vector<PatternPart> split_pattern(std::string_view pattern, bool has_empty_names) {
  using Kind = PatternPart::Kind;
  std::vector<PatternPart> out;
  while (!pattern.empty()) {
    const std::size_t slash = std::min(pattern.find('/'), pattern.size());
    const std::string_view text = pattern.substr(0, slash);
    pattern.remove_prefix(std::min(slash + 1, pattern.size()));
    const Kind kind = text == "**" ? Kind::kAnyDepth : is_magic(text) ? Kind::kGlob : Kind::kLiteral;
    const bool repeated = kind == Kind::kAnyDepth && !out.empty() && out.back().kind == Kind::kAnyDepth;
    if ((has_empty_names || !text.empty()) && !repeated) out.push_back({kind, std::string(text)});
  }
  return out;
}

Scan scan_folders(const std::string& folder, std::span<const PatternPart> parts, ScanOptions options) {
  return Scanner(parts, std::move(options)).scan(folder);
}

}  // namespace penstock::data
