#pragma once

/// How far loads and saves are, told while they run.

#include <cstdint>
#include <functional>
#include <memory>

#include "penstock/standard.h"

namespace penstock {

/// Bytes done and bytes in total.
using ProgressFunction = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// While it lives, the loads and saves that its thread calls tell how far they are: `load`, `load_tensor`, the members
/// of Archive and LazyTensor that load, and `save`. The function is called in that thread, some twenty times a second
/// and once at the end of each of them with done == total, so it needs no lock. Bytes are those of tensors as the file
/// holds them; `done` never falls, and a load that has nothing to read (a map, an empty file) calls once.
///
/// An exception of the function stops the load or save, which lets it through: a load gives nothing, and no file of a
/// save appears. Where scopes are nested, the inner one is told. Made and destroyed in one thread.
///
///     penstock::Progress progress([](auto done, auto total) { std::cerr << done << " of " << total << "\r"; });
///     penstock::load("model.safetensors");
class Progress {
 public:
  explicit Progress(ProgressFunction function);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
