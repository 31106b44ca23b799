#pragma once

// The last step of reading a pickle: cells become the nested structure of an index, with limits that keep hostile files
// small.

#include <cstddef>

#include "format/pt/pickle/cell.h"
#include "format/pt/pickle/world.h"
#include "penstock/entry.h"

namespace penstock::format::pickle {

/// Levels of nesting that a pickle may have; Python's own limit is about half of it. Whoever walks a Value of a `.pt`
/// may recurse that deep, so long as cycles are watched for.
inline constexpr std::size_t kMaxDepth = 2000;

/// Keys of dicts and elements of sets: tuples in tuples that one may have, in depth and in number. Python hashes them
/// by recursion and anew at each use.
inline constexpr int kMaxKeyDepth = 64;
inline constexpr int kMaxKeyParts = 100'000;

using Decode = decltype(OpenOptions::decode);

/// Makes what `root` reaches the structure of the world's index: nodes with sharing and cycles kept, an entry for each
/// tensor, named by the keys that lead to it ("model.0.weight"; a bare tensor is "tensor"), a second one for each
/// further way to the same tensor, and the unknown names. Bare storages become one-dimensional tensors
/// with the type name kStorageName. Byte strings of Python 2 become what `decode` makes of them, as OpenOptions says.
/// kCorrupt for a dict with a key twice, kLimit for nesting beyond kMaxDepth.
void build_structure(Cell* root, World& world, const Decode& decode = {});

}  // namespace penstock::format::pickle
