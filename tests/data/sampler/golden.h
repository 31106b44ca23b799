// Made by make_golden.py with torch 2.13.0.
#pragma once

#include <cstdint>
#include <vector>

namespace golden {

using Indices = std::vector<std::int64_t>;

struct Randperm {
  std::uint64_t seed;
  std::int64_t n;
  Indices order;
};
inline const std::vector<Randperm> kRandpermCases = {
    {1u, 10, {5, 6, 1, 2, 0, 8, 9, 3, 7, 4}},
    {0u, 0, {}},
    {0u, 1, {0}},
    {7u, 2, {1, 0}},
    {4294967297u, 10, {5, 6, 1, 2, 0, 8, 9, 3, 7, 4}},
    {123456789012u, 33, {3, 27, 4,  2,  26, 32, 8,  20, 31, 14, 17, 1,  30, 12, 19, 13, 28,
                         0, 10, 25, 23, 6,  15, 16, 29, 21, 7,  18, 24, 11, 22, 9,  5}},
};

struct Randint {
  std::uint64_t seed;
  std::int64_t high;
  Indices values;
};
inline const std::vector<Randint> kRandintCases = {
    {7u, 1, {0, 0, 0, 0, 0, 0, 0}},
    {7u, 5, {0, 2, 1, 1, 3, 2, 2}},
    {7u, 268435455, {59306160, 171107527, 128500261, 27798011, 3905098, 174903522, 154469282}},
    {7u, 268435456, {171107524, 27798006, 174903507, 77674087, 249162937, 59574807, 104124761}},
    {7u, 268435457, {27515364, 119277865, 112422148, 22085033, 151099375, 98513341, 27127128}},
    {7u, 4294967296, {976413892, 1369975286, 4201435347, 1956722279, 1322904761, 1133316631, 372560217}},
    {7u,
     1099511627776,
     {752595690692, 108744157686, 291964244179, 650496783975, 396459895993, 611018672663, 309610205529}},
    {7u,
     4611686018427387907,
     {1407639518939636932, 551904368352831981, 3475536756154880208, 4122204982959224417, 4205664258540301488,
      710123494352685585, 20668929189138771}},
};

struct Random {
  std::uint64_t seed;
  std::int64_t n;
  bool replacement;
  std::int64_t samples;
  Indices order;
};
inline const std::vector<Random> kRandomCases = {
    {3u, 12, false, -1, {10, 9, 1, 6, 4, 11, 3, 7, 2, 0, 8, 5}},
    {3u, 5, false, 13, {1, 0, 3, 4, 2, 0, 1, 2, 4, 3, 1, 4, 3}},
    {3u, 5, false, 10, {1, 0, 3, 4, 2, 0, 1, 2, 4, 3}},
    {3u, 12, false, 4, {10, 9, 1, 6}},
    {3u, 12, true, -1, {10, 8, 1, 3, 4, 0, 0, 5, 1, 7, 10, 3}},
    {11u, 3, true, 70, {0, 0, 0, 2, 2, 0, 2, 0, 1, 2, 1, 0, 2, 1, 0, 0, 2, 0, 1, 1, 0, 1, 2, 1,
                        0, 1, 1, 1, 2, 2, 1, 1, 0, 1, 1, 1, 0, 1, 0, 2, 0, 1, 1, 2, 1, 2, 2, 2,
                        2, 1, 0, 2, 2, 0, 0, 2, 0, 1, 2, 2, 2, 0, 1, 2, 2, 1, 1, 1, 1, 1}},
};

struct Distributed {
  std::int64_t n;
  std::int64_t replicas;
  std::int64_t rank;
  bool shuffle;
  bool drop;
  std::uint64_t seed;
  std::uint64_t epoch;
  Indices order;
};
inline const std::vector<Distributed> kDistributedCases = {
    {10, 3, 0, true, false, 0u, 0u, {4, 5, 0, 2}},
    {10, 3, 2, true, false, 5u, 2u, {3, 7, 8, 0}},
    {10, 3, 1, false, false, 0u, 0u, {1, 4, 7, 0}},
    {10, 3, 2, false, true, 0u, 0u, {2, 5, 8}},
    {10, 4, 3, true, true, 9u, 1u, {1, 8}},
    {12, 4, 3, true, true, 9u, 1u, {7, 0, 6}},
    {2, 5, 4, true, false, 1u, 0u, {1}},
    {3, 8, 7, false, false, 1u, 0u, {1}},
    {3, 8, 7, false, true, 1u, 0u, {}},
};

inline const Indices kSubset = {10, 20, 30, 40, 50, 60, 70};
inline const Indices kSubsetOrder = {40, 20, 10, 50, 30, 60, 70};                   // seed 4
inline const std::vector<Indices> kBatches = {{8, 7, 1, 5}, {6, 9, 0, 4}, {2, 3}};  // seed 2, 10 by 4

}  // namespace golden
