#pragma once

/// Samples in tar shards, as WebDataset has them. `shards` makes a dataset of them, in which every sample can be read
/// by itself: nothing is converted, and shuffles, ranks and resumed loaders are those of every other dataset. `stream`
/// of such a dataset reads each shard once, from front to back.

#include <functional>
#include <string>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/flag.h"
#include "penstock/text_view.h"

namespace penstock {

struct ShardsOptions {
  /// Take only these fields of each sample, in this order. "__key__" and "__url__" (the shard) may be among them.
  /// Empty: all fields behind "__key__". Bytes of other fields are not read where they are the larger part of a sample.
  std::vector<std::string> keys = {};
  /// The bytes of each field are its value, whatever it holds: for decoders of your own in `map`.
  Flag raw = false;
  /// Keep what was found out (where each sample begins) in a file, and look only into shards that changed since.
  Flag index = true;
  /// Where that file lies. Empty: in $XDG_CACHE_HOME/penstock or ~/.cache/penstock, and nowhere when that cannot be
  /// written. A file named here is an error when it cannot be written, unless the disk is full: then it is left out.
  std::string index_path = {};
  /// Is told once, in a sentence, of a shard that has members and none of a sample, while other shards have samples.
  /// Empty: the sentence is printed to stderr. What it throws is thrown by whoever counted or read.
  std::function<void(const std::string& message)> warn = {};
};

/// Each sample is a dict by field: the members of a shard that follow one another with one key. The key is the path up
/// to the first dot of its last part, and what follows that dot, in lower case, is the field: "a/0001.seg.npy" has key
/// "a/0001" and field "seg.npy". Members without a dot, with a dot in front, and of the form "__x__.json", belong to no
/// sample. Names are labels: nothing is unpacked anywhere.
///
/// A field's last extension says what it is. Tensors: npy, npz, pt, pth, safetensors (nothing in them is run). A whole
/// number: cls, cls2, class, count, index, inx, id. Text: txt, text, transcript. Nested values: json, jsn. All else is
/// bytes, but pickles (pkl, pyd, pickle), which are kUnsafe unless `keys` leaves them out.
///
/// `shards`: paths, URLs, patterns ("train-*.tar"), ranges ("train-{000..146}.tar"), folders, lists joined by "::", and
/// lists of wids (.json). kNotFound for none. What is wrong with a shard comes when its samples are counted, at the
/// first use: kCorrupt where a header is damaged, kUnsupported where it is compressed, and where shards have members
/// and none of a sample. A shard that was cut has the samples before the cut, and one more, which is kTruncated when it
/// is read. Archives that were appended to one another count as one. Errors of a sample name the shard, the member and
/// its place: kKeyNotFound for a field that it lacks, kCorrupt for one that comes twice, kUnsupported for a link or a
/// file with holes.
Dataset shards(const std::vector<std::string>& shards, const ShardsOptions& options = {});
inline Dataset shards(std::initializer_list<std::string> shards, const ShardsOptions& options = {}) {
  return penstock::shards(std::vector<std::string>(shards), options);
}
inline Dataset shards(TextView shards, const ShardsOptions& options = {}) {
  return penstock::shards(std::vector<std::string>{std::string(shards)}, options);
}

}  // namespace penstock
