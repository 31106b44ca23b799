#pragma once

// `penstock doctor`: the facts about a machine that decide how fast it loads, each with what it means.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace penstock::doctor {

/// One thing that is known of this machine.
struct Fact {
  enum class Unit : std::uint8_t { kNone, kBytes, kBytesPerSecond };
  enum class Weight : std::uint8_t { kFine, kNote, kProblem };
  /// Nothing stands for "unknown", "no limit" or "not there", as the name has it.
  using Value = std::variant<std::monostate, bool, std::uint64_t, double, std::string>;

  std::string name;  ///< "open_files"
  Value value = {};
  Unit unit = Unit::kNone;
  Weight weight = Weight::kFine;
  std::string advice = {};  ///< of a note or problem: one sentence on what it means and how to change it
};

struct Section {
  std::string name;  ///< "limits", "cuda:0"
  std::vector<Fact> facts;

  void add(std::string fact, Fact::Value value, Fact::Unit unit = Fact::Unit::kNone);
  /// Says it of the fact that was added last.
  void advise(Fact::Weight weight, std::string advice);
};

struct DiagnosisOptions {
  /// A file to read, or a folder to make one in; empty: the folder for temporary files.
  std::string path = {};
  /// Of a file that is made, and the most that is read of one.
  std::uint64_t file_bytes = std::uint64_t{128} << 20;
  std::size_t copy_bytes = std::size_t{64} << 20;
};

/// What decides how fast this machine loads: devices with the copy speeds to them, reading of a file, memory, limits of
/// the process and what the kernel offers, some of it measured on the spot within a few seconds. What cannot be found
/// out is said in its place; only for a path that cannot be read the error is thrown. Makes a context on each device.
std::vector<Section> diagnose(const DiagnosisOptions& options);

// The parts of it.
void diagnose_devices(std::size_t copy_bytes, std::vector<Section>& out);
Section diagnose_file(const DiagnosisOptions& options);
Section diagnose_memory(std::size_t copy_bytes);
Section diagnose_limits();
Section diagnose_kernel();

/// "[always] madvise never" as the kernel writes it: "always"; empty when nothing is chosen.
std::string_view chosen_word(std::string_view setting) noexcept;
/// What a call of io_uring_setup that failed with `error` means; `setting` is kernel.io_uring_disabled, or empty.
std::string why_no_io_uring(int error, std::string_view setting);

}  // namespace penstock::doctor
