#pragma once

/// Writes tensors and nested values to files that NumPy, torch and safetensors read. The extension of the path chooses
/// the format. Start at `save`, at the end.

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "penstock/flag.h"
#include "penstock/tensor.h"
#include "penstock/text_view.h"
#include "penstock/value.h"

namespace penstock {

struct SaveOptions {
  /// "npy", "npz", "pt", "safetensors" or "dcp". Empty: chosen by the extension of the path,
  /// or "dcp" where the path ends with '/'; kInvalidArgument when the extension names none
  /// of them.
  std::string format = {};
  /// Deflate the members of an `.npz`; kUnsupported for other formats.
  Flag compress = false;
  /// `__metadata__` of safetensors; an empty map writes an empty one. kUnsupported for other formats unless it is
  /// empty.
  std::optional<std::map<std::string, std::string>> metadata = {};
  /// Flush the file to the disk before it appears under its name. Changes nothing for a URL.
  Flag sync = true;
  /// Called after everything is written and before the file appears. What it throws is thrown, and no file appears
  /// then. Callers who save tensors of a mapped file can check here that the file is still whole.
  std::function<void()> before_commit = {};
  /// Setting it stops the save with kCancelled, and no file appears.
  std::stop_token stop = {};
};

/// Writes `value` so that NumPy, torch and safetensors read it. The file appears under `path` whole or not at all. It
/// replaces an existing file and keeps that file's permissions. `path` may be a URL of a store (s3, gs, az): the
/// object appears whole or not at all too, and replaces an older one; more than 8 MiB travel in parts, of which about
/// ten are in memory. Nothing can be written to http(s):// and hf:// (kUnsupported). In a `.pt`, tensors that share a
/// storage still share it; in safetensors that is kUnsupported. kUnsupported names the first value or dtype that the
/// format cannot hold.
///
/// "dcp" is the folder of a distributed checkpoint, which torch.distributed.checkpoint loads: `path` is made where it
/// is missing, and holds an earlier checkpoint until it holds the new one. Tensors that share a storage become apart.
void save(const Value& value, TextView path, const SaveOptions& options = {});
/// One tensor: a bare array in `.npy`, a bare tensor in `.pt`, "tensor" in `.safetensors`, "arr_0" in `.npz`.
void save(const Tensor& tensor, TextView path, const SaveOptions& options = {});

}  // namespace penstock
