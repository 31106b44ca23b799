#pragma once

/// Documents in files of tokens: Megatron's NAME.idx with NAME.bin, llm.c's files, and any long array in which a token
/// begins each document.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/flag.h"
#include "penstock/load.h"
#include "penstock/text_view.h"

namespace penstock {

struct DocumentsOptions {
  /// Take each sequence of Megatron's for itself. A document is several of them, such as sentences, joined.
  Flag sequences = false;
  /// The token that each document begins with, where the file does not say where documents lie. What comes before the
  /// first one is a document too, because long documents go on in the next file. Unset: that of the tokenizer which the
  /// file of llm.c is for (50256 for GPT-2, 128000 for Llama 3).
  std::optional<std::int64_t> begin = {};
  /// As for rows().
  OptionalFlag mmap = {};
};

/// Samples are the documents, each a tensor of its tokens: slices (windows.h) of the array that holds all of them.
/// `location` is a file of Megatron's (NAME.idx, NAME.bin, or NAME itself), a file of llm.c's, or a glob, of whose
/// files the documents follow each other: windows() joins them over all files, which needs one type of tokens. Where
/// documents lie is read now: Megatron's index, or all tokens of llm.c's. What an index says is checked: kCorrupt and
/// kTruncated name what of it is not so. kInvalidArgument for a file that has no documents.
Dataset documents(TextView location, const DocumentsOptions& options = {});
/// These files, in this order.
Dataset documents(const std::vector<std::string>& locations, const DocumentsOptions& options = {});
inline Dataset documents(std::initializer_list<std::string> locations, const DocumentsOptions& options = {}) {
  return documents(std::vector<std::string>(locations), options);
}
/// The documents in this array of one dimension, such as `raw` gives, each of which begins with the token `begin`. Its
/// tokens are read now.
Dataset documents(const LazyTensor& tokens, Integer begin, OptionalFlag mmap = {});

}  // namespace penstock
