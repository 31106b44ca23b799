#pragma once

// When a request is asked a second time because its answer is late. A store answers most requests soon and a few very
// late, and the second answer to the same question mostly comes soon. A batch waits for the latest of its samples, so
// that a few second requests make all batches come sooner. If the store is slow as a whole they would only make it
// slower, and so they are few: a share of all answers.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::io::remote {

/// What is known of how soon the servers answer, and how many second requests may be made. Thread-safe.
class Hedging {
 public:
  using Seconds = std::chrono::duration<double>;
  /// No request is asked a second time before this, because a local server answers sooner than a second one could help.
  static constexpr Seconds kLeastPatience{0.05};
  static constexpr std::size_t kLeastAnswers = 20;  ///< of a server, before it is judged

  /// A request to the server `authority` was answered, with the first byte after `first_byte`, and the others in
  /// `transfer` behind it. `share`: of all answers, and of all `bytes`, how many may be second ones.
  void answered(std::string_view authority, Seconds first_byte, double share, Seconds transfer = Seconds(0),
                std::uint64_t bytes = 0) noexcept;
  /// How long to wait for a first byte of that server, before a second request is made: as long as 95 of 100 answers
  /// take at most. Nothing while too few are known, and where the answers mostly wait for their bytes: what is asked
  /// twice takes its share of the bandwidth then.
  std::optional<Seconds> patience(std::string_view authority) const;
  /// Takes one second request from those that may be made; false where there is none, or where `bytes`, of a large one,
  /// are more than may come twice: many small answers are no reason to fetch a large one again.
  bool spend(std::uint64_t bytes) noexcept;
  static constexpr std::uint64_t kLargeBytes = std::uint64_t{1} << 20;  ///< those of more are counted

 private:
  static constexpr std::size_t kRemembered = 128;
  static constexpr std::size_t kMostServers = 32;
  static constexpr double kMostSaved = 10;        ///< second requests that may be made at once
  static constexpr double kFirstBytes = 8 << 20;  ///< a part of a large load may come late among the first
  static constexpr double kMostSavedBytes = 64 << 20;

  /// The last answers of a server.
  struct Server {
    std::array<double, kRemembered> seconds = {};    ///< until the first byte
    std::array<double, kRemembered> transfers = {};  ///< from there on
    std::size_t answers = 0;
    std::optional<Seconds> patience = {};
  };

  mutable std::mutex mutex_;
  std::map<std::string, Server, std::less<>> servers_;
  double saved_ = 0;
  double saved_bytes_ = kFirstBytes;
};

}  // namespace penstock::io::remote
