#pragma once

/// Options of one location behind a URL, as values. Whatever they leave out follows from the variables of the
/// environment (docs/remote.md, "Settings"). `open(open_source("s3://bucket/model.safetensors", {.timeout = 5}))`.

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/flag.h"
#include "penstock/integer.h"
#include "penstock/source.h"
#include "penstock/text_view.h"

namespace penstock {

/// A folder on disk that keeps what was read by URL, shared with other processes that name it.
struct CacheOptions {
  std::string folder = {};                   ///< empty: nothing is kept
  std::uint64_t max_bytes = 50'000'000'000;  ///< the least recently used goes beyond it; 2 MB or more
  double trust_seconds = 0;                  ///< for so long an object in it is taken for unchanged; 0: always asked
};

struct RemoteOptions {
  /// Seconds without a byte, or with less than 1 KiB each, after which a request has failed: 0.01 to 3600.
  std::optional<double> timeout = {};
  /// For so long a read tries again: 0 to 86400.
  std::optional<double> retry_seconds = {};
  /// Second requests for bytes whose answer is late, as a share of all answers: 0 (none) to 1.
  std::optional<double> hedges = {};
  /// Most requests of one read in flight: 1 to 1024. All reads of a process together have PENSTOCK_REMOTE_REQUESTS.
  std::optional<Integer> requests = {};
  std::optional<CacheOptions> cache = {};

  /// The store of s3://, gs://, az:// and hf://, such as "http://localhost:9000".
  std::optional<std::string> endpoint = {};
  /// "path" or "virtual": where the buckets of another store than Amazon's are in a URL.
  std::optional<std::string> addressing = {};
  std::optional<std::string> region = {};
  /// Keys of s3:// and gs://.
  std::optional<std::string> access_key_id = {};
  std::optional<std::string> secret_access_key = {};
  std::optional<std::string> session_token = {};
  /// The account of az://, and its key or a shared access signature.
  std::optional<std::string> account = {};
  std::optional<std::string> account_key = {};
  std::optional<std::string> sas_token = {};
  /// For s3:// and az://, ask without a signature.
  OptionalFlag anonymous = {};
  /// The bearer token of hf://, gs://, az://, http:// and https://. It is sent to the host of the location, and to no
  /// other that a redirect names.
  std::optional<std::string> token = {};
};

/// As `open_source` of the location alone. All requests for the source, and for the files beside it that an index
/// names, follow `options`. kInvalidArgument for options out of range; they change nothing for a file.
Source open_source(TextView path, const RemoteOptions& options);

}  // namespace penstock
