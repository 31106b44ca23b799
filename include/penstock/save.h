#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "penstock/tensor.h"
#include "penstock/value.h"

namespace penstock {

struct SaveOptions {
  /// "npy", "npz", "pt" or "safetensors"; empty: from the extension of the path (kInvalidArgument when it has none of
  /// them).
  std::string format = {};
  /// Deflate the members of an `.npz`; kUnsupported for other formats.
  bool compress = false;
  /// `__metadata__` of safetensors, an empty one where this is; kUnsupported for other formats when not empty.
  std::optional<std::map<std::string, std::string>> metadata = {};
  /// Flush to the disk before the file appears under its name.
  bool sync = true;
  /// Called when all is written and before the file appears: where it throws, nothing appears. For who saves what is
  /// mapped, to see whether it is still whole.
  std::function<void()> before_commit = {};
  /// kCancelled soon after it is set, and nothing appears.
  std::stop_token stop = {};
};

/// Writes `value` so that NumPy, torch and safetensors read it. The file appears under `path` whole or not at all; an
/// existing file is replaced, its permissions kept. Tensors that share a storage still do in a `.pt`; safetensors
/// refuses that with kUnsupported. kUnsupported names the first value or dtype the format cannot hold.
void save(const Value& value, std::string_view path, const SaveOptions& options = {});
/// One tensor: a bare array in `.npy`, a bare tensor in `.pt`, "tensor" in `.safetensors`, "arr_0" in `.npz`.
void save(const Tensor& tensor, std::string_view path, const SaveOptions& options = {});

}  // namespace penstock
