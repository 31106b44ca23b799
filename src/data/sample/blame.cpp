#include "data/sample/blame.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "data/dataset_impl.h"
#include "data/sample/scratch.h"
#include "io/locations.h"

namespace penstock::data {

namespace {

template <std::size_t N>
bool has(const std::array<ErrorCode, N>& codes, ErrorCode code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

template <std::size_t N>
bool tells_of(const std::array<int, N>& errors, const Error& error) {
  return std::any_of(errors.begin(), errors.end(), [&](int number) { return error.system_error() == number; });
}

/// The error of a function of the program that read a URL has no path, but a status.
bool is_of_url(const Error& error) { return error.http_status() || io::waits_for_server(error.path()); }

}  // namespace

bool is_of_surroundings(const Error& error) {
  static constexpr std::array kOfProcess = {ErrorCode::kCancelled, ErrorCode::kDeviceFailed, ErrorCode::kNoDevice,
                                            ErrorCode::kOutOfMemory, ErrorCode::kTimeout};
  // What a store refuses (keys, rights) or does not answer. What it does not have, or has in pieces, is the sample's.
  static constexpr std::array kOfStore = {ErrorCode::kPermission, ErrorCode::kIo};
  static constexpr std::array kNoDescriptors = {EMFILE, ENFILE};
  // The server of a network file system is gone.
  static constexpr std::array kNoServer = {ENOTCONN, EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH};
  return has(kOfProcess, error.code()) || tells_of(kNoDescriptors, error) ||
         (has(kOfStore, error.code()) && (is_of_url(error) || tells_of(kNoServer, error)));
}

Error of_sample(const Error& error, const Dataset& dataset, std::int64_t index) {
  if (error.code() == ErrorCode::kCancelled) return error;
  const std::string what = dataset.impl().describe(index);
  return error.prefixed(what == error.path() ? core::format("sample {}: ", index)
                                             : core::format("sample {} ({}): ", index, core::escaped(what)));
}

void fail(Sample& out, std::size_t position, const Error& error, const CallContext& call, Scratch& scratch) {
  if (!call.sets_aside || is_of_surroundings(error)) throw SampleError(position, error);
  auto kept = std::make_shared<const Error>(error);
  out = Sample{.failure = kept.get()};
  scratch.objects.push_back(std::move(kept));
}

Error outage(const Error& error, std::size_t samples) {
  return error.prefixed(
      core::format("{} samples one after another cannot be had, which is taken for an outage and not for bad samples; "
                   "the last one: ",
                   samples));
}

}  // namespace penstock::data
