#pragma once

/// Samples of different length: how long each is, batches of samples of about one length, and samples that share a row.
/// All of it comes from headers: no payload is read, and no function of the program is called.

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/flag.h"
#include "penstock/integer.h"
#include "penstock/sampler.h"

namespace penstock {

struct LengthsOptions {
  /// The dimension whose size is the length; negative counts from the last.
  Integer dim = 0;
  /// The part of a dict that is meant. Empty: the only tensor of the sample that has this dimension; several are fine
  /// where they are equally long.
  std::string key = {};
  /// Threads, as LoaderOptions::num_workers.
  Integer num_workers = -1;
  /// Ends the search by kCancelled.
  std::stop_token stop = {};
};

/// The length of each sample: of files() from their headers, of rows, packed samples and lists of tensors from what is
/// in memory. The first sample, by index, whose header cannot be read or has no such dimension is thrown, with its
/// name: kShapeMismatch, kKeyNotFound. kUnsupported behind functions of samples, which nobody knows the result of
/// without calling them.
std::vector<std::int64_t> lengths(const Dataset& dataset, const LengthsOptions& options = {});

/// What becomes of a sample that is longer than a batch may be.
enum class TooLong : std::uint8_t {
  kRaise,  ///< kInvalidArgument names it
  kAlone,  ///< it is a batch by itself
  kSkip,   ///< it is in no batch
};

/// Give boundaries, max_tokens or both; and with boundaries batch_size, max_tokens or both.
struct LengthBucketOptions {
  /// Bucket i has the lengths from boundaries[i - 1] on and below boundaries[i]; one more bucket lies in front, and one
  /// behind. They rise and are at least 1.
  std::vector<std::int64_t> boundaries = {};
  /// The most that a padded batch may have: samples times the longest of its bucket. Without boundaries samples are
  /// sorted by length, and cut into batches as long as that allows: samples times the longest of the batch.
  std::optional<Integer> max_tokens = {};
  /// Samples in a batch, at most.
  std::optional<Integer> batch_size = {};
  /// Shuffles samples of a bucket (or of one length) and the batches, by (seed, epoch). Else batches rise in length,
  /// and samples in index.
  Flag shuffle = true;
  /// Leaves out the last batch of each bucket where it has room for more samples (without boundaries there is none),
  /// and batches that do not go round among the ranks; else ranks begin again at the first one.
  Flag drop_last = false;
  TooLong too_long = TooLong::kRaise;
  /// Rank r of n takes one of each n batches that follow each other in length, so that all ranks pad alike.
  Integer rank = 0;
  Integer num_replicas = 1;

  LengthsOptions lengths = {};
};

namespace sampler {

/// Batches of samples of about one length, which pad (collate.h) therefore pads little. Every epoch has as many, so
/// that positions are exact. kInvalidArgument for options that do not go together.
BatchSampler length_buckets(const Dataset& dataset, const LengthBucketOptions& options);
/// The same of lengths that are known: sample i has lengths[i]. kInvalidArgument for a negative one.
BatchSampler length_buckets(const std::vector<std::int64_t>& lengths, const LengthBucketOptions& options);

}  // namespace sampler

/// What becomes of a sequence that is longer than a row.
enum class LongSequence : std::uint8_t {
  kRaise,  ///< kInvalidArgument names it
  kCut,    ///< what lies beyond the row is left out
  kSplit,  ///< it becomes several, each as long as the row but the last
};

struct PackSequencesOptions {
  LongSequence too_long = LongSequence::kRaise;
  /// Fills rows behind their last sequence; a value of the sequences' type.
  double value = 0;
  /// Adds to each sample "cu_seqlens", int32, where in the row each sequence begins and the last one ends, as attention
  /// over sequences of different length takes it, and "max_seqlen", an integer, the elements of the longest. What fills
  /// a row counts as one more sequence there. All rows have as many numbers, so that batches stack: behind the last
  /// sequence each is the length of the row, which stands for sequences without elements.
  Flag cu_seqlens = false;
  /// As LengthsOptions.
  std::string key = {};
  Integer num_workers = -1;
  std::stop_token stop = {};
};

/// Sequences, which are samples of one dimension and one type, put together in rows of `length` elements. Each sample
/// is the dict of "tokens"; "positions", int64 of each token's place in its sequence; and "segments", int64 that counts
/// the sequences of the row from 1. Behind the last sequence positions and segments are 0. Sequences go where they fill
/// a row best (the longest first, each into the fullest row that has room), which depends on lengths alone: every rank
/// and every run has the same rows. Rows are in the order of their first sequences. Sequences without elements are in
/// no row. kShapeMismatch and kDTypeMismatch name a sample that is no such sequence, kChanged one whose length is no
/// longer what its header said.
Dataset pack_sequences(const Dataset& dataset, Integer length, const PackSequencesOptions& options = {});

}  // namespace penstock
