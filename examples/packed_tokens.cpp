// Tokens for a language model. Documents of one corpus are in memory: they are packed into rows of 64 by best fit. The
// other corpus comes as a stream, of which nobody knows how long it is: its documents are cut into rows as they come.
// Three rows of the first go with each row of the second, shuffled in a window. The run is stopped and goes on exactly.
//
//   packed_tokens

#include <penstock/penstock.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <vector>

namespace ps = penstock;

constexpr std::int64_t kRow = 64;

// In place of a tokenizer: document `index`, of 5 to 45 tokens.
ps::Tensor document(std::int64_t index) { return ps::full({5 + index * 17 % 41}, 1000 + index, ps::DType::int64); }

// Rows of tokens that lie one behind the other: document after document, each with its number in the row.
ps::SampleStream rows_of_stream(std::int64_t documents) {
  return ps::stream(
      [documents] {
        return [documents, next = std::int64_t{0}, tokens = std::vector<std::int64_t>(),
                segments = std::vector<std::int64_t>()]() mutable -> std::optional<ps::Value> {
          while (std::ssize(tokens) < kRow) {
            if (next == documents) return std::nullopt;  // what is no whole row is left out
            const ps::Tensor text = document(next++);
            for (const std::int64_t token : text.values<std::int64_t>()) tokens.push_back(token);
            segments.resize(tokens.size(), segments.empty() ? 1 : segments.back() + 1);
          }
          const auto row = [](std::vector<std::int64_t>& all) {
            ps::Tensor out = ps::Tensor::empty({kRow}, ps::DType::int64);
            std::copy_n(all.begin(), kRow, out.values<std::int64_t>().begin());
            all.erase(all.begin(), all.begin() + kRow);
            return ps::Value::tensor(out);
          };
          return ps::Value::dict({{"tokens", row(tokens)}, {"segments", row(segments)}});
        };
      },
      {.name = "stream"});
}

// The parts that both corpora have.
ps::Value tokens_and_segments(const ps::Value& row) {
  return ps::Value::dict({{"tokens", row["tokens"]}, {"segments", row["segments"]}});
}

int main() try {
  std::vector<ps::Tensor> documents;
  for (std::int64_t index = 0; index < 400; ++index) documents.push_back(document(index));
  const ps::Dataset packed = ps::pack_sequences(ps::dataset(documents), kRow);
  const ps::SampleStream rows = ps::mix({ps::stream(packed).map(tokens_and_segments), rows_of_stream(1000)}, {3, 1});
  const ps::LoaderOptions options{.batch_size = 16, .num_workers = 2};

  ps::DataLoader whole(rows.shuffle(32, 1), options);
  std::int64_t tokens = 0;
  std::int64_t places = 0;
  std::vector<std::int64_t> sums;
  for (const ps::Batch& batch : whole) {
    tokens += ps::sum(batch["segments"] > 0).item<std::int64_t>();
    places += batch["tokens"].numel();
    sums.push_back(ps::sum(batch["tokens"]).item<std::int64_t>());
  }
  std::printf("%zu batches, %.1f %% of their places are tokens\n", sums.size(),
              100 * static_cast<double>(tokens) / static_cast<double>(places));

  ps::DataLoader stopped(rows.shuffle(32, 1), options);
  for (int i = 0; i < 5; ++i) stopped.next();
  const std::string state = stopped.position().to_json();
  ps::DataLoader resumed(rows.shuffle(32, 1), options);
  resumed.seek(ps::LoaderPosition::from_json(state));
  std::vector<std::int64_t> rest;
  for (const ps::Batch& batch : resumed) rest.push_back(ps::sum(batch["tokens"]).item<std::int64_t>());
  const bool same = std::equal(rest.begin(), rest.end(), sums.begin() + 5, sums.end());
  std::printf("resumed after batch 5: %s\n", same ? "the same batches" : "other batches");
  return same ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "packed_tokens: %s\n", error.what());
  return 1;
}
